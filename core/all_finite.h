#pragma once

#include <ATen/core/Tensor.h>

namespace rondo {

/// True when no element is NaN or infinite, as in every tensor of integers. One pass over the
/// memory of a dense tensor on the CPU, on this thread.
bool all_finite(const at::Tensor& tensor);

}  // namespace rondo
