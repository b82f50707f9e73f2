#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "callbacks/callback.h"
#include "metrics/metric.h"

namespace rondo {

/// Gathers losses and metrics and logs them; fills slot `loss_accum`. Training: `loss` of each
/// update, summed over its batches; one that is not finite ends the run. Validation: `val_loss` of
/// each batch, and at the end `loss` and the model's metrics over all samples. Tensors in the step
/// do the sums.
class LossAccumCallback : public CoreCallback {
 public:
  void setup(Trainer& trainer) override;
  void on_train_step_end(Trainer& trainer, Model&, const Outputs& outputs, const Batch&) override;
  void on_validate_start(Trainer& trainer, Model&, const DataLoader&, Loop&) override;
  void on_validate_step_end(Trainer& trainer,
                            Model&,
                            const Outputs& outputs,
                            const Batch&) override;
  void on_validate_batch_end(
      Trainer&, Model&, const Outputs& outputs, const Batch& batch, int64_t batch_idx) override;
  void on_validate_end(Trainer& trainer, Model&, Loop&) override;

  /// The sum of the running group's losses, and the metrics of validations.
  NamedTensors captured_state() override;

  /// Of a validation, in the order in which they are logged.
  const std::vector<std::unique_ptr<Metric>>& metrics() const { return metrics_; }

 private:
  void warn_without_loss(Trainer& trainer);

  at::Tensor group_loss_;  // float32, 0-dim: sum over the batches of the running group
  std::vector<std::unique_ptr<Metric>> metrics_;
  bool has_batches_ = false;  // the running validation had one with a loss
  std::string without_loss_;  // the tensors of a batch of it that had none
  bool has_warned_ = false;   // of such batches
};

}  // namespace rondo
