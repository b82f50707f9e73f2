#include "data/grouped_stream.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include "core/error.h"
#include "data/data_files.h"
#include "data/tensor_dataset.h"

using namespace rondo;
using namespace rondo::test;

namespace {

DataLoader loader_of(int64_t samples, int64_t batch_size, bool drop_last) {
  LoaderOptions options;
  options.batch_size = batch_size;
  options.drop_last = drop_last;
  return DataLoader("train", from_tensors({{"x", at::arange(samples)}}), options);
}

}  // namespace

TEST_SUITE_BEGIN("data/grouped_stream");

TEST_CASE("a data set with fewer rows than a batch is an error that says so") {
  for (const int64_t epoch : {0, 4}) {
    GroupedStream stream(loader_of(5, 10, true), {1}, 1, {epoch, 0});
    CHECK(stream.first_epoch() == epoch);
    CHECK_THROWS_AS(stream.next(), DataError);
    const std::string message = message_of([&] { stream.next(); });
    for (const std::string& fact : {"epoch " + std::to_string(epoch) + " ",
                                    std::string("batch_size = 10"),
                                    std::string("drop_last")}) {
      CHECK_MESSAGE(contains(message, fact.c_str()), message);
    }
  }
  GroupedStream none(loader_of(0, 10, false), {1}, 1, {});
  CHECK(contains(message_of([&] { none.next(); }), "no sample"));
}

TEST_CASE("where the rest of an epoch makes no batch, the next epoch begins") {
  struct Case {
    int64_t from;
    int64_t first_epoch;
    int64_t first_sample;
  };

  for (const Case& one : {Case{0, 2, 0}, Case{60, 2, 60}, Case{90, 3, 0}, Case{130, 3, 0}}) {
    CAPTURE(one.from);
    GroupedStream stream(loader_of(100, 32, true), {2}, 1, {2, one.from});
    CHECK(stream.first_epoch() == one.first_epoch);
    const GroupedBatch first = stream.next();
    CHECK(first.batch["x"][0].item<int64_t>() == one.first_sample);
    CHECK(first.position.size == (one.from == 60 ? 1 : 2));
    CHECK(first.ends_epoch == (one.from == 60));
  }
}

TEST_CASE("each batch knows its position in its group, and a group ends with its epoch") {
  struct Position {
    bool is_first;
    bool is_last;
    int64_t size;
    bool ends_epoch;
  };

  GroupedStream stream(
      loader_of(100, 32, false), {3}, 1, {});  // four batches, the last of four rows
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const Position& one : {Position{true, false, 3, false},
                                Position{false, false, 3, false},
                                Position{false, true, 3, false},
                                Position{true, true, 1, true}}) {
      const GroupedBatch batch = stream.next();
      CHECK(batch.position.is_first == one.is_first);
      CHECK(batch.position.is_last == one.is_last);
      CHECK(batch.position.size == one.size);
      CHECK(batch.ends_epoch == one.ends_epoch);
    }
  }
}

TEST_CASE("batches of a group that are alike have no share, others have that of their samples") {
  GroupedStream stream(loader_of(10, 4, false), {3}, 1, {});
  for (const double share : {0.4, 0.4, 0.2}) {
    CHECK(stream.next().share.value() == doctest::Approx(share));
  }
  GroupedStream even(loader_of(12, 4, false), {3}, 1, {});
  GroupedStream cut(loader_of(12, 4, false), {1, 2}, 1, {});
  for (int i = 0; i < 6; ++i) {
    CHECK_FALSE(even.next().share.has_value());
    const GroupedBatch piece = cut.next();
    CHECK_FALSE(piece.share.has_value());
    CHECK(piece.batch.size() == 2);
    CHECK(piece.position == GroupPosition{i % 2 == 0, i % 2 == 1, 2});
  }
}

TEST_CASE("a pass ends after batches_of_pass, also one that was resumed, and never later") {
  GroupOptions three;
  three.batches_of_pass = 3;
  GroupedStream stream(loader_of(10, 2, false), three, 1, {1, 4});
  CHECK(stream.next().ends_epoch);  // the third of its epoch
  for (const int64_t first : {0, 2, 4, 0}) {
    const GroupedBatch next = stream.next();
    CHECK(next.batch["x"][0].item<int64_t>() == first);
    CHECK(next.ends_epoch == (first == 4));
  }
  GroupOptions nine;
  nine.batches_of_pass = 9;
  LoaderOptions shuffled;
  shuffled.batch_size = 2;
  shuffled.shuffle = true;
  const DataLoader loader("train", from_tensors({{"x", at::arange(6)}}), shuffled);
  GroupedStream cut(loader, nine, 1, {});
  GroupedStream whole(loader, {}, 1, {});
  for (int i = 0; i < 9; ++i) {
    const GroupedBatch next = cut.next();
    CHECK(at::equal(next.batch["x"], whole.next().batch["x"]));
    CHECK(next.ends_epoch == (i % 3 == 2));
  }
}

TEST_CASE("a group is what each virtual rank has of its batches, one rank after the other") {
  GroupOptions options{2};
  options.ranks = {4, 0, 4};
  GroupedStream all(loader_of(10, 5, false), options, 1, {});
  const std::vector<std::vector<int64_t>> expected = {{0, 1}, {5, 6}, {2}, {7}, {3}, {8}, {4}, {9}};
  const std::vector<int64_t> ends = {0, 1, 0, 2, 0, 1, 0, 3};
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    const GroupedBatch piece = all.next();
    CHECK(at::equal(piece.batch["x"], torch::tensor(expected[i])));
    CHECK(piece.rank == static_cast<int64_t>(i / 2));
    CHECK(piece.position == GroupPosition{i % 2 == 0, i == 7, 8});
    CHECK(piece.ends_rank == ends[i]);
    CHECK(piece.share == static_cast<double>(expected[i].size()) / 10.0);
    CHECK(piece.share_of_rank == (i < 2 ? 0.4 : 0.2));
    CHECK(piece.counts.samples == static_cast<int64_t>(expected[i].size()));
    CHECK(piece.ends_epoch == (i == 7));
  }
}

TEST_CASE("of a group a process gets its own virtual ranks, and at the end the others' counts") {
  GroupOptions options{2};
  options.ranks = {4, 2, 2};
  GroupedStream own(loader_of(10, 5, false), options, 1, {});
  const std::vector<int64_t> expected = {3, 8, 4, 9};
  const std::vector<int64_t> ends = {0, 1, 0, 2};
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    const GroupedBatch piece = own.next();
    CHECK(piece.batch["x"].item<int64_t>() == expected[i]);
    CHECK(piece.ends_rank == ends[i]);
    CHECK(piece.position == GroupPosition{i % 2 == 0, i == 3, 8});
    CHECK(piece.counts.samples == (i == 3 ? 7 : 1));
    CHECK(piece.batches_elsewhere == (i == 3 ? 4 : 0));
  }
}

TEST_CASE("a virtual rank without samples runs the first piece with a share of zero") {
  GroupOptions options;
  options.ranks = {4, 0, 4};
  GroupedStream stream(loader_of(2, 5, false), options, 1, {});
  const std::vector<int64_t> expected = {0, 1, 0, 0};
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    const GroupedBatch piece = stream.next();
    CHECK(piece.batch["x"].item<int64_t>() == expected[i]);
    CHECK(piece.share == (i < 2 ? 0.5 : 0.0));
    CHECK(piece.share_of_rank == (i < 2 ? 0.5 : 0.0));
    CHECK(piece.counts.samples == (i < 2 ? 1 : 0));
  }
}

TEST_SUITE_END();
