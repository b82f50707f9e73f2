#pragma once

#include <cstdint>
#include <string>

#include "callbacks/algorithm.h"

namespace rondo {

/// Changes each training picture by a few operations that are drawn for it: shear, translation and
/// rotation, brightness, contrast, sharpness, and inverting what is bright. Values are in [0, 1].
/// Source: Cubuk et al. 2019, arXiv:1909.13719
class RandAugment final : public Algorithm {
 public:
  struct Options {
    double severity = 9.0;        ///< how strong operations are, in [0, 10]
    int64_t depth = 2;            ///< operations of a picture, >= 1
    std::string input = "image";  ///< in the batch: floating [B, channels, height, width]
  };

  explicit RandAugment(const Options& options);

  bool match(Event event, const State&) const override { return event == Event::BeforeForward; }

  void apply(Event event, Trainer& trainer) override;

 private:
  Options options_;
};

/// Mixes each training picture with a mixture of chains of such operations.
/// Source: Hendrycks et al. 2019, arXiv:1912.02781, Algorithm 1, without its loss
class AugMix final : public Algorithm {
 public:
  struct Options {
    double severity = 3.0;        ///< how strong operations are, in [0, 10]
    int64_t depth = -1;           ///< operations of a chain, >= 1; -1: 1 to 3, drawn
    int64_t width = 3;            ///< chains, >= 1
    double alpha = 1.0;           ///< of the distributions of their shares, > 0
    std::string input = "image";  ///< in the batch: floating [B, channels, height, width]
  };

  explicit AugMix(const Options& options);

  bool match(Event event, const State&) const override { return event == Event::BeforeForward; }

  void apply(Event event, Trainer& trainer) override;

 private:
  Options options_;
};

}  // namespace rondo
