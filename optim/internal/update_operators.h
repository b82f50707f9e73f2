#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>

namespace torch {
class Library;
}

namespace rondo::detail {

/// Each operator is defined beside the optimizer that it belongs to.
void define_sgd_operator(torch::Library& library);
void define_adam_operator(torch::Library& library);

/// The value of a 0-dim float64 tensor on the CPU, reached where the dispatcher does not see it.
double& number_in(const at::Tensor& tensor);

/// True when the tensors can be walked as flat arrays side by side: float32 or float64, dense, one
/// shape, dtype and order of elements. Undefined ones do not count.
bool is_flat(const at::Tensor& param, std::initializer_list<const at::Tensor*> others);

}  // namespace rondo::detail
