#pragma once

#include <cstdint>
#include <string>

#include "callbacks/algorithm.h"

namespace rondo {

/// Clips the gradients of an update, after unscaling and before masks. The options
/// precision.max_gradient_… do the same without an algorithm.
/// Source: see optim/clip.h
class GradientClipping final : public Algorithm {
 public:
  struct Options {
    std::string clipping_type = "norm";  ///< "norm", "value" or "adaptive"
    double clipping_threshold = 1.0;     ///< > 0
  };

  explicit GradientClipping(const Options& options);

  bool match(Event event, const State& state) const override;
  void apply(Event event, Trainer& trainer) override;

 private:
  Options options_;
};

}  // namespace rondo
