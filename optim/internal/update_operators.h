#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <initializer_list>
#include <vector>

#include "core/prepared_operator.h"

namespace torch {
class Library;
}

namespace rondo::detail {

/// Each operator is defined beside the optimizer that it belongs to, with an overload `scaled` that
/// multiplies the gradients by a number first. Eager steps do not call that one: a pass of the
/// traced backend makes it of a clipping and an update.
void define_sgd_operator(torch::Library& library);
void define_adam_operator(torch::Library& library);

/// A boxed kernel that prepares an operator and calls it once: for overloads that nothing but
/// executors, which prepare them themselves, calls often.
template <PreparedCall (*kPrepare)(const std::vector<c10::IValue>&)>
void prepare_and_call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  kPrepare(torch::jit::pop(*stack, count))();
}

/// The value of a 0-dim float64 tensor on the CPU, reached where the dispatcher does not see it.
double& number_in(const at::Tensor& tensor);

/// True when the tensors can be walked as flat arrays side by side: on the CPU, float32 or float64,
/// dense, one shape, dtype and order of elements. Undefined ones do not count.
bool is_flat(const at::Tensor& param, std::initializer_list<const at::Tensor*> others);

/// Whether a scale of gradients is one number on the CPU, of the parameter's dtype, or undefined.
bool is_number_like(const at::Tensor& scale, const at::Tensor& param);

/// What the loops do while they update; nothing without a scale.
void scale_by_operator(const at::Tensor& grad, const at::Tensor& scale);

}  // namespace rondo::detail
