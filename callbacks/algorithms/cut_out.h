#pragma once

#include <cstdint>
#include <string>

#include "callbacks/algorithm.h"

namespace rondo {

/// Sets squares of the pictures to zero, at the same places in a whole batch.
/// Source: DeVries and Taylor 2017, arXiv:1708.04552
class CutOut final : public Algorithm {
 public:
  struct Options {
    int64_t num_holes = 1;        ///< squares, >= 1
    double length = 0.5;          ///< side of a square as a share of the shorter side, in [0, 1]
    std::string input = "image";  ///< in the batch: floating [B, channels, height, width]
  };

  explicit CutOut(const Options& options);

  bool match(Event event, const State& state) const override;
  void apply(Event event, Trainer& trainer) override;

 private:
  Options options_;
};

}  // namespace rondo
