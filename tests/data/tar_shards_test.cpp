#include "data/records/tar_shards.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/types.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/data_files.h"
#include "data/data_loader.h"
#include "data/sorted.h"
#include "data/tar_files.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr int kSamples = 23;

/// Three archives of 23 samples, whose number is their label.
TarShards::Options shards_in(const TempDir& dir) {
  int number = 0;
  for (const int count : {10, 1, 12}) {
    std::vector<std::pair<std::string, std::string>> files;
    for (int i = 0; i < count; ++i, ++number) {
      const std::string name = fmt::format("{:03}", number);
      files.emplace_back(name + ".cls", std::to_string(number));
      files.emplace_back(name + ".x.npy", npy_row({static_cast<float>(number), 0.5F}));
    }
    write_file(dir.path() / fmt::format("{}.tar", number), tar_bytes(files));
  }
  TarShards::Options options;
  options.file = (dir / "*.tar").string();
  options.tensors = {{"features", "x.npy"}, {"label", "cls"}};
  return options;
}

std::vector<int64_t> labels(TarShards& data) {
  std::vector<int64_t> all;
  while (const auto sample = data.next()) {
    all.push_back((*sample)["label"].item<int64_t>());
  }
  return all;
}

std::vector<int64_t> epoch_of(TarShards& data, int64_t epoch) {
  data.start(epoch);
  return labels(data);
}

}  // namespace

TEST_SUITE_BEGIN("data/tar_shards");

TEST_CASE("batches that a loader is to make ahead are refused, as the shards keep their state") {
  const TempDir dir;
  LoaderOptions ahead;
  ahead.prefetch = 4;
  const DataLoader loader("train", use<TarShards>(shards_in(dir)), ahead);
  const std::string message = message_of([&] { loader.samples(); });
  CHECK(contains(message, "loader \"train\""));
  CHECK(contains(message, "leave prefetch out"));
  ahead.prefetch = 0;
  CHECK_NOTHROW(DataLoader("train", use<TarShards>(shards_in(dir)), ahead).samples());
}

TEST_CASE("every sample comes once, in the order of the archives") {
  const TempDir dir;
  TarShards data(shards_in(dir));
  std::vector<int64_t> all(kSamples);
  std::iota(all.begin(), all.end(), 0);
  CHECK(epoch_of(data, 0) == all);
  data.start(1);
  const auto first = data.next();
  REQUIRE(first);
  CHECK(equal_bytes((*first)["features"], torch::tensor({0.0F, 0.5F})));
}

TEST_CASE("a buffer shuffles, each epoch otherwise, whatever is decoded ahead") {
  const TempDir dir;
  TarShards::Options options = shards_in(dir);
  options.shuffle_buffer = 7;
  TarShards data(options);
  const std::vector<int64_t> first = epoch_of(data, 0);
  const std::vector<int64_t> second = epoch_of(data, 1);
  CHECK(first != sorted(first));
  CHECK(first != second);
  CHECK(sorted(first) == sorted(second));
  options.ahead = 0;
  TarShards plain(options);
  CHECK(epoch_of(plain, 1) == second);
}

TEST_CASE("its state is the place behind the last sample that was given") {
  const TempDir dir;
  TarShards::Options options = shards_in(dir);
  options.shuffle_buffer = 5;
  TarShards data(options);
  const std::vector<int64_t> whole = epoch_of(data, 3);
  data.start(3);
  for (size_t given = 0; given <= whole.size(); ++given) {
    CAPTURE(given);
    TarShards resumed(options);
    resumed.load_state(data.save_state());
    const auto at = whole.begin() + static_cast<int64_t>(given);
    CHECK(labels(resumed) == std::vector<int64_t>(at, whole.end()));
    data.next();
  }
}

TEST_CASE("a state of other archives, or of none, is refused") {
  const TempDir dir;
  const TarShards::Options options = shards_in(dir);
  TarShards data(options);
  data.start(0);
  StateDict state = data.save_state();
  state.set("shards", StateValue(4));
  CHECK_THROWS_AS(data.load_state(state), CheckpointError);
  state = data.save_state();
  state.set("buffer", StateValue(torch::tensor({{9, 0}})));
  CHECK_THROWS_AS(data.load_state(state), CheckpointError);
  CHECK_THROWS_AS(data.load_state({}), CheckpointError);
}

TEST_CASE("a sample that lacks a file is told with archive, offset and what it has") {
  const TempDir dir;
  write_file(dir / "a.tar", tar_bytes({{"1.cls", "1"}, {"1.txt", "2 3"}, {"2.cls", "x"}}));
  TarShards::Options options;
  options.file = (dir / "a.tar").string();
  options.tensors = {{"label", "cls"}, {"x", "txt"}};
  TarShards data(options);
  data.start(0);
  const auto first = data.next();
  REQUIRE(first);
  CHECK(equal_bytes((*first)["x"], torch::tensor({2.0F, 3.0F})));
  const std::string message = message_of([&] { data.next(); });
  CHECK(contains(message, "a.tar: offset 2048"));
  CHECK(contains(message, "expected a number"));
  options.tensors = {{"label", "clss"}};
  CHECK_THROWS_AS(TarShards{options}, UsageError);
  options.tensors = {{"x", "npy"}};
  TarShards lacking(options);
  lacking.start(0);
  CHECK(contains(message_of([&] { lacking.next(); }), "it has [cls, txt]"));
}

TEST_SUITE_END();
