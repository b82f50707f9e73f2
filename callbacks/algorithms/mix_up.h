#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "callbacks/algorithm.h"

namespace rondo {

/// Trains on mixtures of two samples: each sample is mixed with another one of its batch, by
/// one share for the batch, which is at most a half; the loss sees labels mixed alike.
/// Source: Zhang et al. 2018, arXiv:1710.09412; at most a half: Composer
class MixUp final : public Algorithm {
 public:
  struct Options {
    double alpha = 0.2;             ///< of the Beta distribution that the share is drawn from, > 0
    std::string input = "image";    ///< in the batch: floating [B, channels, height, width]
    std::string target = "label";   ///< in the batch: integers, or shares of classes
    std::string output = "logits";  ///< what the model returns as logits
  };

  explicit MixUp(const Options& options);

  bool match(Event event, const State& state) const override;
  void apply(Event event, Trainer& trainer) override;

  std::string exclusive() const override { return "mixes samples"; }

 private:
  at::Tensor mixed(const at::Tensor& all) const;

  Options options_;
  at::Tensor order_;  // of the step: which sample each one is mixed with
  at::Tensor share_;  // of the step: of the other sample
};

}  // namespace rondo
