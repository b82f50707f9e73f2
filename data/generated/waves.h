#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace rondo {

/// Windows of time series with what follows, made without any file, for forecasting. A sample has
/// "series", float32 [window], and "target", float32 [horizon]: two waves of random period, size
/// and phase, a trend, and noise. Series i is a pure function of (seed, split, i): a smaller set is
/// the beginning of a larger one.
class Waves final : public Dataset {
 public:
  struct Options {
    int64_t size = 1000;          ///< series, >= 1
    int64_t window = 48;          ///< steps that are seen, >= 1
    int64_t horizon = 8;          ///< steps that follow, >= 1
    double noise = 0.05;          ///< standard deviation of that of a step, >= 0
    std::string split = "train";  ///< "train" or "val": other series of the same kind
    uint64_t seed = 0;            ///< other series again
  };

  /// \throws UsageError  for options out of range
  explicit Waves(const Options& options);

  int64_t size() const override { return series_.size(0); }

  Sample get(int64_t index) const override;
  Batch get_batch(const std::vector<int64_t>& indices) const override;

 private:
  at::Tensor series_;  // float32 [size, window]
  at::Tensor target_;  // float32 [size, horizon]
};

}  // namespace rondo
