#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "callbacks/algorithm.h"

namespace rondo {

/// Pastes a rectangle of another sample of the batch into each one, the same rectangle for all;
/// the loss sees labels mixed by the areas that are left.
/// Source: Yun et al. 2019, arXiv:1905.04899, Algorithm A1
class CutMix final : public Algorithm {
 public:
  struct Options {
    double alpha = 1.0;             ///< of the Beta distribution of the area that is kept, > 0
    std::string input = "image";    ///< in the batch: floating [B, channels, height, width]
    std::string target = "label";   ///< in the batch: integers, or shares of classes
    std::string output = "logits";  ///< what the model returns as logits
  };

  explicit CutMix(const Options& options);

  bool match(Event event, const State& state) const override;
  void apply(Event event, Trainer& trainer) override;

  std::string exclusive() const override { return "mixes samples"; }

 private:
  Options options_;
  at::Tensor order_;  // of the step: from which sample each one gets the rectangle
  at::Tensor kept_;   // of the step: the share of the area that is left
};

}  // namespace rondo
