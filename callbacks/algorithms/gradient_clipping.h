#pragma once

#include <cstdint>
#include <string>

#include "callbacks/algorithm.h"

namespace rondo {

/// Clips the gradients that an optimizer takes, after unscaling and before masks. The options
/// precision.max_gradient_… do the same without an algorithm.
/// Source: see optim/clip.h
class GradientClipping final : public Algorithm {
 public:
  struct Options {
    std::string clipping_type = "norm";  ///< "norm", "value" or "adaptive"
    double clipping_threshold = 1.0;     ///< > 0
  };

  explicit GradientClipping(const Options& options);

  /// At no event: those of an update come once, and each of several optimizers has its own time.
  bool match(Event, const State&) const override { return false; }

  void apply(Event, Trainer&) override {}

  void on_before_optimizer_step(Trainer&, Model&, Optimizer& optimizer) override;

 private:
  Options options_;
};

}  // namespace rondo
