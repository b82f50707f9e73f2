#pragma once

#include <ATen/core/Tensor.h>

namespace rondo {

/// A conjugate is a view with a flag, and so is its imaginary part: readers get a copy with the
/// flag's work done. A slot has no flag. While a step is recorded, its own conjugates are tensors
/// of their own, with the values and the layout that readers would get.
/// @{
at::Tensor conj_as_tensor(const at::Tensor& x);
at::Tensor imag_as_tensor(const at::Tensor& x);
/// @}

/// A write would go through the view into what was conjugated.
/// \throws Objection
void object_to_write_of_conjugate(const at::Tensor& tensor);

}  // namespace rondo
