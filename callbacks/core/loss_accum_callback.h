#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "callbacks/callback.h"

namespace rondo {

/// Logs losses; fills slot `loss_accum`. Training: `loss` of each update and its parts,
/// `loss/<name>`, summed over its batches; a loss that is not finite ends the run. Validation:
/// `val_loss` of each batch. The sums are tensors in the step.
class LossAccumCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "loss_accum";

  void setup(Trainer& trainer) override;
  void on_train_step_end(Trainer& trainer, Model&, const Outputs& outputs, const Batch&) override;
  void on_validate_step_end(Trainer& trainer,
                            Model&,
                            const Outputs& outputs,
                            const Batch&) override;

  /// The sum of the running group's losses.
  NamedTensors captured_state() override;

 private:
  at::Tensor& sum_of_part(const std::string& name, bool is_alone);

  at::Tensor group_loss_;     // 0-dim, float64 with fp64, else float32: sum over the batches of the
                              // running group
  NamedTensors group_parts_;  // the same of each part of the loss, "loss/<name>"
};

}  // namespace rondo
