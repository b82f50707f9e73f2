#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <vector>

namespace rondo {

/// How single operators of a scope depart from the number format of the others. Names are globs of
/// operators without their namespace: "softmax", "*_loss".
struct OperatorPrecision {
  /// Computed in float32: arguments in half precision are widened first.
  std::vector<std::string> in_float32 = {};
  /// What results of those with dimensions are rounded to again; none: they stay in float32.
  std::optional<at::ScalarType> rounded_to = std::nullopt;
  /// Every other operator's float32 result with dimensions is rounded to float16, and so is the
  /// gradient that comes back through it: float16 on a device that cannot compute in it.
  bool emulates_float16 = false;

  bool does_nothing() const { return in_float32.empty() && !emulates_float16; }
};

/// Names of operators that are computed in float32 where others are not, as in LibTorch's autocast
/// for GPUs: sums of many terms, and functions that leave float16's range.
const std::vector<std::string>& operators_best_in_float32();

/// \throws UsageError  naming the glob that no operator has
void check_operator_names(const std::vector<std::string>& globs);

/// Applies it to the operators of this thread for as long as it lives, which must not be longer
/// than \p precision does. The work is tensor code: a recorded step holds it.
class OperatorPrecisionScope {
 public:
  explicit OperatorPrecisionScope(const OperatorPrecision& precision);
  OperatorPrecisionScope(const OperatorPrecisionScope&) = delete;
  OperatorPrecisionScope& operator=(const OperatorPrecisionScope&) = delete;
  ~OperatorPrecisionScope();

 private:
  const OperatorPrecision* outer_;
  bool was_included_;
};

/// Has the operators of this thread come by, for their precision and for what stands in for them,
/// or not. \return what it was before
bool include_operators(bool is_included);

}  // namespace rondo
