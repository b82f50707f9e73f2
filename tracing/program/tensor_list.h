#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <vector>

namespace rondo {

/// A list of tensors as an operator's argument of this type takes it: of tensors, or of optional
/// ones, among which an undefined tensor is none.
c10::IValue tensor_list(const std::vector<at::Tensor>& tensors, const c10::TypePtr& type);

}  // namespace rondo
