#pragma once

#include <optional>
#include <string>

namespace rondo {

struct PrecisionOptions {
  std::string dtype = "fp32";  ///< "fp32", or "bf16": autocast inside the step
  std::optional<double>
      max_gradient_norm;  ///< > 0: gradients are scaled down to this joint L2 norm
  std::optional<double>
      max_gradient_value;  ///< > 0: gradients are clamped to ±this; excludes the norm
};

}  // namespace rondo
