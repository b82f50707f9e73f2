#include <doctest/doctest.h>
#include <torch/types.h>

#include <vector>

#include "core/config_value.h"
#include "core/error.h"
#include "core/state_dict.h"
#include "data/data_files.h"
#include "data/data_loader.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Sample i has i + 1 tokens and as many targets, all of them i, and its number beside them.
Sample sample_of(int64_t i, at::ScalarType targets) {
  return {{"tokens", at::full({i + 1}, i, at::kLong)},
          {"targets", at::full({i + 1}, i, targets)},
          {"scores", at::full({i + 1, 2}, static_cast<double>(i), at::kFloat)},
          {"number", at::full({}, i, at::kLong)}};
}

struct Growing final : Dataset {
  struct Options {
    int64_t size = 10;
    at::ScalarType targets = at::kLong;
  };

  explicit Growing(const Options& options) : o(options) {}

  int64_t size() const override { return o.size; }

  Sample get(int64_t index) const override { return sample_of(index, o.targets); }

  Options o;
};

/// Two samples, of one and two tokens that are the number of the epoch.
struct Augmented final : Dataset {
  int64_t size() const override { return 2; }

  Sample get(int64_t index) const override { return in_epoch(index, 0); }

  Batch get_epoch_batch(const std::vector<int64_t>& indices, int64_t epoch) const override {
    std::vector<Sample> samples;
    for (const int64_t index : indices) {
      samples.push_back(in_epoch(index, epoch));
    }
    return stack(samples);
  }

  static Sample in_epoch(int64_t index, int64_t epoch) {
    const at::Tensor tokens = at::full({index + 1}, epoch, at::kLong);
    return {{"tokens", tokens}, {"targets", tokens}, {"scores", tokens.to(at::kFloat)}};
  }
};

struct GrowingStream final : IterableDataset {
  void start(int64_t) override { next_index = 0; }

  std::optional<Sample> next() override {
    return next_index == 10 ? std::nullopt : std::optional(sample_of(next_index++, at::kLong));
  }

  int64_t next_index = 0;
};

LoaderOptions padding(std::vector<int64_t> lengths) {
  LoaderOptions options;
  options.batch_size = 4;
  options.pad_to = std::move(lengths);
  options.pad = {"tokens", "targets", "scores"};
  return options;
}

std::vector<Batch> batches(const DataLoader& loader) {
  std::vector<Batch> all;
  const auto stream = loader.stream({}, 1);
  while (auto batch = stream->next()) {
    all.push_back(std::move(*batch));
  }
  return all;
}

std::string error_of(const DataLoader& loader) {
  return message_of([&] { batches(loader); });
}

}  // namespace

TEST_SUITE_BEGIN("data/padding");

TEST_CASE("samples of several lengths get the least length that all of a batch fit into") {
  for (const auto& source : {use<Growing>(), use<GrowingStream>()}) {
    const std::vector<Batch> all = batches(DataLoader("t", source, padding({4, 6, 8, 16})));
    REQUIRE(all.size() == 3);
    const std::vector<int64_t> lengths = {4, 8, 16};
    int64_t samples = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const Batch& batch = all[i];
      const int64_t rows = i == 2 ? 2 : 4;  // a short last batch stays short
      CHECK(batch.size() == rows);
      CHECK(batch["tokens"].sizes() == at::IntArrayRef({rows, lengths[i]}));
      CHECK(batch["targets"].sizes() == at::IntArrayRef({rows, lengths[i]}));
      CHECK(batch["scores"].sizes() == at::IntArrayRef({rows, lengths[i], 2}));
      samples += batch.size();
    }
    CHECK(samples == 10);
    const Batch& first = all[0];
    CHECK(equal_bytes(first["tokens"],
                      torch::tensor({{0, 0, 0, 0}, {1, 1, 0, 0}, {2, 2, 2, 0}, {3, 3, 3, 3}})));
    CHECK(equal_bytes(
        first["targets"],
        torch::tensor({{0, -100, -100, -100}, {1, 1, -100, -100}, {2, 2, 2, -100}, {3, 3, 3, 3}})));
    CHECK(equal_bytes(first["scores"].select(2, 1), first["tokens"].to(at::kFloat)));
    CHECK(equal_bytes(first["number"], torch::tensor({0, 1, 2, 3})));
  }
}

TEST_CASE("samples that are padded are those of their epoch") {
  const DataLoader loader("t", use<Augmented>(), padding({4}));
  const int64_t no = 0;
  for (const int64_t epoch : {0, 3}) {
    const Batch batch = *loader.stream({epoch, 0}, 1)->next();
    CHECK(
        equal_bytes(batch["tokens"], torch::tensor({{epoch, no, no, no}, {epoch, epoch, no, no}})));
  }
}

TEST_CASE("a sample that is too long is an error that names it, the tensor and both lengths") {
  const std::string message = error_of(DataLoader("t", use<Growing>(), padding({4, 8})));
  for (const char* fact : {"\"tokens\"", "sample 8", "length 9", "pad_to is 8"}) {
    CHECK_MESSAGE(contains(message, fact), message);
  }
}

TEST_CASE("a tensor that is not there, has no length or cannot hold -100 is an error") {
  LoaderOptions options = padding({16});
  options.pad.push_back("words");
  CHECK(contains(error_of(DataLoader("t", use<Growing>(), options)), "\"words\""));
  options.pad = {"number"};
  CHECK(contains(error_of(DataLoader("t", use<Growing>(), options)), "\"number\""));
  const std::string message =
      error_of(DataLoader("t", use<Growing>({10, at::kByte}), padding({16})));
  CHECK(contains(message, "\"targets\""));
  CHECK(contains(message, "-100"));
}

TEST_CASE("lengths that do not ascend, and one option without the other, are refused") {
  const std::vector<std::vector<int64_t>> wrong = {{8, 4}, {4, 4}, {0, 4}, {}};
  for (const std::vector<int64_t>& lengths : wrong) {
    CHECK_THROWS_AS(DataLoader("t", use<Growing>(), padding(lengths)), UsageError);
  }
  LoaderOptions options = padding({4});
  options.pad.clear();
  CHECK_THROWS_AS(DataLoader("t", use<Growing>(), options), UsageError);
}

TEST_SUITE_END();
