#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace rondo {

/// What is in a tensor, at a glance.
struct TensorSummary {
  std::string name;  ///< of the argument, with that of the state or batch entry where it is one
  std::string type;  ///< "float32[64, 10]"
  int64_t count = 0;
  int64_t nans = 0;
  int64_t infs = 0;
  double min = 0.0;  ///< of the finite elements; 0 when there are none
  double max = 0.0;

  bool is_finite() const { return nans == 0 && infs == 0; }
};

/// Counts and extremes of a floating tensor; of any other, only its type and count.
TensorSummary summary_of(std::string name, const at::Tensor& tensor);

/// "self (model.w): float32[64, 10], min -3.1, max 8.2, 2 NaN, 0 inf"
std::string to_text(const TensorSummary& summary);

/// How many elements of a tensor are NaN or infinite; 0 for integers. Reads float32 and float64 in
/// one quick pass and allocates nothing then.
int64_t count_non_finite(const at::Tensor& tensor);

}  // namespace rondo
