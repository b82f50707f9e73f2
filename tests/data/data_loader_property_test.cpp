#include <doctest/doctest.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdlib>

#include "core/random.h"
#include "core/state_dict.h"
#include "data/data_loader.h"
#include "data/tensor_dataset.h"

using namespace rondo;

namespace {

/// The rows of a tensor, one after the other, another tensor in each epoch.
struct Rows final : IterableDataset {
  struct Options {
    at::Tensor rows = {};
  };

  explicit Rows(const Options& options) : rows(options.rows) {}

  void start(int64_t number_of_epoch) override {
    epoch = number_of_epoch;
    row = 0;
  }

  std::optional<Sample> next() override {
    if (row == rows.size(0)) {
      return std::nullopt;
    }
    return Sample{{"x", rows[row++] + epoch}};
  }

  at::Tensor rows;
  int64_t epoch = 0;
  int64_t row = 0;
};

std::vector<Batch> batches(const DataLoader& loader, LoaderPosition from, uint64_t seed) {
  std::vector<Batch> all;
  const auto stream = loader.stream(from, seed);
  while (auto batch = stream->next()) {
    all.push_back(std::move(*batch));
  }
  return all;
}

at::Tensor joined(const std::vector<Batch>& all) {
  std::vector<at::Tensor> parts = {at::empty({0, 3})};
  for (const Batch& batch : all) {
    parts.push_back(batch["x"]);
  }
  return at::cat(parts);
}

int trials() {
  const char* scale = std::getenv("RONDO_TEST_SCALE");
  return 300 * (scale != nullptr ? std::max(1, std::atoi(scale)) : 1);
}

}  // namespace

TEST_SUITE_BEGIN("data/data_loader_property");

TEST_CASE(
    "a stream from any position yields what the uninterrupted one yields from there, bitwise") {
  for (int trial = 0; trial < trials(); ++trial) {
    CAPTURE(trial);
    KeyedRandom random(2024, static_cast<uint64_t>(trial));
    const auto size = static_cast<int64_t>(random.below(60));
    const at::Tensor x = at::rand({size, 3});
    const bool is_iterable = random.below(3) == 0;
    LoaderOptions options;
    options.batch_size = 1 + static_cast<int64_t>(random.below(12));
    options.shuffle = !is_iterable && random.below(2) == 0;
    options.drop_last = random.below(2) == 0;
    options.prefetch = static_cast<int64_t>(random.below(4));
    const DataLoader loader(is_iterable ? use<Rows>({x}) : from_tensors({{"x", x}}), options);
    const auto epoch = static_cast<int64_t>(random.below(5));
    const uint64_t seed = random.next();

    const std::vector<Batch> whole = batches(loader, {epoch, 0}, seed);
    const size_t done = random.below(whole.size() + 1);
    int64_t consumed = 0;
    for (size_t i = 0; i < done; ++i) {
      consumed += whole[i].size();
    }
    const std::vector<Batch> rest = batches(loader, {epoch, consumed}, seed);
    REQUIRE(rest.size() == whole.size() - done);
    for (size_t i = 0; i < rest.size(); ++i) {
      REQUIRE(equal_bytes(rest[i]["x"], whole[done + i]["x"]));
    }

    if (!options.drop_last && size > 0) {  // between two batches: the same samples, cut anew
      const auto inside = static_cast<int64_t>(random.below(static_cast<uint64_t>(size)));
      const at::Tensor after = joined(batches(loader, {epoch, inside}, seed));
      REQUIRE(equal_bytes(after, joined(whole).slice(0, inside).contiguous()));
    }
  }
}

TEST_SUITE_END();
