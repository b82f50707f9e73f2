#pragma once

#include <cstdint>

#include "callbacks/callback.h"

namespace rondo {

/// Sums gradients over several batches before one update; fills slot `grad_accum`. The loss of each
/// batch is divided by the size of its own group; validation losses are not.
class GradAccumCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "grad_accum";

  void setup(Trainer& trainer) override;

  /// In the step: divides the loss.
  void on_after_forward(Trainer& trainer, Model&, Outputs& outputs, const Batch&) override;

  /// Batches of an update.
  int64_t steps() const { return steps_; }

 private:
  int64_t steps_ = 1;
};

}  // namespace rondo
