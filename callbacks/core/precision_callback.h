#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/operator_precision.h"
#include "callbacks/callback.h"
#include "callbacks/core/precision_choice.h"
#include "callbacks/core/precision_options.h"
#include "optim/grad_scaler.h"
#include "optim/optimizer.h"

namespace rondo {

/// Sets the number format of a forward pass for as long as it lives. Clears the cache of autocast
/// at the end, so that no cast from outside ends up in a recorded step.
class PrecisionScope {
 public:
  PrecisionScope(std::optional<at::ScalarType> autocast,
                 c10::DeviceType device,
                 const OperatorPrecision& operators);
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;
  ~PrecisionScope();

 private:
  OperatorPrecisionScope operators_;
  std::optional<at::ScalarType> autocast_;
  c10::DeviceType device_;
  bool was_on_ = false;
};

/// Sets the arithmetic of a step and prepares gradients for the update; fills slot `precision`.
/// fp32 and fp64 run the step as written. bf16 and fp16 run forward under autocast and keep
/// parameters in float32. With bf16_pure parameters are bfloat16 and the optimizer keeps masters.
/// fp16 scales the loss and skips an update with a non-finite gradient, which a callback can also
/// request (DecidesOnNan).
class PrecisionCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "precision";

  /// \throws UsageError  naming the option that is out of range
  /// \throws NotSupportedError  when the device lacks the format and there is no fallback
  void pre_setup(Trainer& trainer) override;
  void setup(Trainer& trainer) override;

  /// Finds out whether a callback decides on non-finite gradients.
  void post_setup(Trainer& trainer) override;

  /// Logs it if bfloat16 is slower than float32 on this machine.
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;

  /// Logs how many updates were skipped.
  void on_fit_end(Trainer& trainer, Loop&) override;

  /// Discards the findings of a failed step.
  void on_train_step_start(Trainer&, Model&, const Batch&) override { found_bad_.clear(); }

  /// Unscales gradients, or copies those of half-precision weights to their masters.
  void on_before_optimizer_step(Trainer& trainer, Model&, Optimizer& optimizer) override;

  /// Updates the loss scale, once per update however many optimizers stepped.
  void on_train_step_end(Trainer& trainer, Model&, const Outputs&, const Batch&) override;
  NamedTensors captured_state() override;
  void on_save_checkpoint(Trainer& trainer, StateDict& state) override;
  void check_checkpoint(Trainer& trainer, const StateDict& state) override;
  void on_load_checkpoint(Trainer& trainer, const StateDict& state) override;

  PrecisionScope scope() const { return PrecisionScope(autocast_, device_, operators_); }

  /// The format that the run computes in; differs from the option if the device lacks that.
  const std::string& dtype() const { return choice_.dtype; }

  /// float64 with fp64, bfloat16 with bf16_pure, else float32.
  at::ScalarType dtype_of_weights() const;

  Masters masters() const;

  /// \throws UsageError  when the optimizer cannot do what the precision needs
  void check_optimizer(const Optimizer& optimizer) const;

  /// A batch whose floating-point tensors have the dtype of the weights; unchanged with autocast.
  /// \capture safe
  Batch cast(const Batch& batch) const;

  /// The loss that backward starts from.  \capture safe
  at::Tensor scaled(const at::Tensor& loss) const;

  /// Clips by norm or by value, as configured.  \capture safe: tensor work only
  void clip_gradients(Optimizer& optimizer) const;

  /// Updates, unless unscaling found a non-finite gradient.  \capture safe
  void step(Optimizer& optimizer, const Optimizer::Evaluate& evaluate = {}) const;

  /// Null when the loss is not scaled.
  const GradScaler* scaler() const { return scaler_.get(); }

 private:
  void note_skipped(const Trainer& trainer, int64_t skipped);

  PrecisionOptions options_;
  PrecisionChoice choice_;
  OperatorPrecision operators_;
  std::optional<at::ScalarType> autocast_;
  c10::DeviceType device_ = c10::kCPU;
  std::unique_ptr<GradScaler> scaler_;
  std::vector<std::pair<const Optimizer*, at::Tensor>> found_bad_;  // during a step
  bool skips_bad_ = false;      // updates with bad gradients, without loss scaling
  int64_t skipped_ = 0;         // updates up to the last one, with loss scaling
  int64_t skipped_in_row_ = 0;  // the last ones of them
};

}  // namespace rondo
