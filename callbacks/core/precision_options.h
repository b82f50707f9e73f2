#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rondo {

struct PrecisionOptions {
  /// "fp32" and "fp64": weights, activations and gradients; "bf16" and "fp16": autocast inside the
  /// step, weights stay float32; "bf16_pure": all in bfloat16, updated in float32
  std::string dtype = "fp32";
  std::string on_unsupported = "fallback";  ///< "fallback", "error", or "emulate" (fp16 only)
  std::vector<std::string> float32_operators = {};  ///< globs, such as "softmax"

  std::optional<double> loss_scaling_factor = std::nullopt;  ///< > 0; none: dynamic
  double initial_loss_scale = 65536.0;                       ///< > 0
  int64_t steps_per_increase = 2000;                         ///< >= 1
  double loss_scale_growth = 2.0;                            ///< > 1
  double loss_scale_backoff = 0.5;                           ///< in (0, 1)
  double min_loss_scale = 1e-4;                              ///< > 0
  std::optional<double> max_loss_scale = std::nullopt;       ///< > 0; none: that of float32
  std::optional<bool> log_loss_scale = std::nullopt;         ///< none: where it is dynamic

  std::optional<double>
      max_gradient_norm;  ///< > 0: gradients are scaled down to this joint L2 norm
  std::optional<double>
      max_gradient_value;  ///< > 0: gradients are clamped to ±this; excludes the norm
  std::optional<double> max_gradient_ratio;  ///< > 0: adaptive clipping, to this share of the norm
                                             ///< of the weights; excludes the other two
  bool clip_by_group = false;                ///< whether each parameter group has a norm of its own
};

/// \throws UsageError  naming what is out of range, or excludes another
void check_clipping(const PrecisionOptions& options);

}  // namespace rondo
