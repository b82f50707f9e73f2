#pragma once

#include <string>

#include "callbacks/callback.h"

namespace rondo {

/// Logs L2 norms on log steps: `model_wise_params_norm` of the trained parameters,
/// `model_wise_grad_norm` of their gradients, unscaled and not yet clipped, and
/// `per_layer_grad_norm/layer_<i>` of the gradients of each layer.
/// Source: ComputeNorm of Cerebras' ModelZoo trainer.
class ComputeNorm final : public Callback {
 public:
  struct Options {
    /// Its first group is a layer's number; the last place in a parameter's name that matches
    /// counts.
    std::string layer_pattern = "(?:layer|block)s?\\.?(\\d+)\\.";
  };

  /// \throws UsageError  when the pattern is no regular expression with a group
  explicit ComputeNorm(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(ComputeNorm(options)); }

  void on_before_backward(Trainer& trainer, Model&, Outputs&) override;
  void on_before_optimizer_step(Trainer& trainer, Model&, Optimizer& optimizer) override;

 private:
  Options options_;
};

}  // namespace rondo
