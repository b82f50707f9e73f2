#pragma once

#include <torch/types.h>

#include <cstdint>
#include <limits>
#include <optional>

#include "data/data_loader.h"
#include "data/dataset.h"

namespace rondo::test {

/// Samples that do not tell how many they are.
class SampleStream final : public IterableDataset {
 public:
  struct Options {
    int64_t samples = std::numeric_limits<int64_t>::max();
  };

  explicit SampleStream(const Options& options) : samples_(options.samples) {}

  void start(int64_t) override { given_ = 0; }

  std::optional<Sample> next() override {
    if (given_ == samples_) {
      return std::nullopt;
    }
    ++given_;
    return Sample{{"x", torch::zeros({4})}, {"label", torch::zeros({}, torch::kLong)}};
  }

 private:
  int64_t samples_;
  int64_t given_ = 0;
};

/// A loader of pairs from such a stream.
inline DataLoader stream_loader(const SampleStream::Options& options = {}) {
  LoaderOptions pairs;
  pairs.batch_size = 2;
  return DataLoader("val", use<SampleStream>(options), pairs);
}

}  // namespace rondo::test
