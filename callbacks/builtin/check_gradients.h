#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "callbacks/callback.h"

namespace rondo {

/// Compares gradients of the first batch with finite differences of the loss, for some elements of
/// each parameter, and writes `<artifact_dir>/gradients.txt`. For eager steps in float64, where
/// random numbers of the forward pass are repeated. `rondo debug --gradients` runs it.
class CheckGradients final : public Callback {
 public:
  struct Options {
    int64_t elements = 8;     ///< of each parameter, >= 1, spread over it
    double step = 1e-5;       ///< by which an element is moved either way, > 0
    double tolerance = 1e-4;  ///< of the difference, as a share of the larger number, > 0
  };

  /// \throws UsageError  for options out of range
  explicit CheckGradients(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(CheckGradients(options)); }

  /// \throws UsageError  for recorded steps, and weights that are not float64
  void setup(Trainer& trainer) override;
  void on_train_step_start(Trainer&, Model&, const Batch& batch) override;

  /// \throws Error  naming the worst element, when a gradient is wrong
  void on_after_backward(Trainer& trainer, Model& model, Outputs&) override;

 private:
  Options options_;
  Batch batch_;
  at::Tensor random_state_;  // before the step
  bool is_done_ = false;
};

}  // namespace rondo
