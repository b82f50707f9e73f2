#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace rondo {

/// From the least to the greatest of some numbers.
struct ValueRange {
  double min = 0.0;
  double max = 0.0;
};

/// What is in a tensor, at a glance.
struct TensorSummary {
  std::string name;  ///< of the argument, with that of the state or batch entry where it is one
  std::string type;  ///< "Float[64, 10]"
  int64_t count = 0;
  int64_t nans = 0;
  int64_t infs = 0;
  std::optional<ValueRange> range;  ///< of the finite elements; nothing when there are none

  bool is_finite() const { return nans == 0 && infs == 0; }
};

/// Counts and range of a tensor of numbers or bools; of any other, only its type and count.
TensorSummary summary_of(std::string name, const at::Tensor& tensor);

/// "self (model.w): Float[64, 10], min -3.1, max 8.2, 2 NaN, 0 inf"
std::string to_text(const TensorSummary& summary);

/// How many elements of a tensor are NaN or infinite; 0 for integers. Reads float32 and float64 in
/// one quick pass and allocates nothing then.
int64_t count_non_finite(const at::Tensor& tensor);

}  // namespace rondo
