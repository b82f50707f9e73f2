#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "callbacks/callback.h"

namespace rondo {

/// Logs `gradient_noise_scale` on log steps: the batch size, in samples, from which on larger
/// batches stop paying. It compares the gradient of a group's first batch with that of the whole
/// group, so an update takes several batches (`loop.grad_accum_steps`,
/// `loop.device_train_microbatch_size`). Groups whose batches differ in size do not count. Costs a
/// pass over the gradients in two batches of a group.
/// Source: McCandlish et al. 2018, arXiv:1812.06162, appendix A.1; `noise` and `signal` are its
/// estimates of tr(Sigma) and |G|^2, each a moving average
class GradientNoiseScale final : public Callback {
 public:
  struct Options {
    double smoothing = 0.95;  ///< of the moving averages, in [0, 1)
  };

  explicit GradientNoiseScale(const Options& options) : options_(options) {}

  void setup(Trainer& trainer) override;

  /// Warns when an update takes one batch. \throws UsageError  when the run has several optimizers
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  void on_train_step_start(Trainer&, Model&, const Batch& batch) override;
  void on_after_backward(Trainer& trainer, Model&, Outputs&) override;
  void on_before_optimizer_step(Trainer& trainer, Model&, Optimizer& optimizer) override;

  /// The first batch's squared norm, and the two averages.
  NamedTensors captured_state() override;

 private:
  Options options_;
  int64_t batch_size_ = 0;  // of the step that is recorded, which is one for each size
  at::Tensor first_;        // all three: float32, 0-dim
  at::Tensor noise_;
  at::Tensor signal_;
};

}  // namespace rondo
