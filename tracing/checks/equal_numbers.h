#pragma once

#include <ATen/core/Tensor.h>

namespace rondo {

/// As `equal_bytes`, but for NaNs, which are all alike: which of its NaNs a processor makes depends
/// on the order of the operands, which IEEE 754 leaves open.
bool equal_numbers(const at::Tensor& a, const at::Tensor& b);

}  // namespace rondo
