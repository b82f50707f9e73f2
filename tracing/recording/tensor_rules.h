#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace rondo {

/// \file
/// Which tensors a program can have. All throw an Objection.

/// Objects to an argument or output without plain memory, or whose bytes are not its values.
/// \param what  "output \"y\"": what the tensor is in the step
void object_to_layout(const at::Tensor& tensor, const std::string& what);

/// Objects to a result without plain memory.
void object_to_layout_of_result(const at::Tensor& tensor, const std::string& op);

/// Objects to a tensor that is neither on the step's device nor on the CPU.
void object_to_device(const at::Tensor& tensor, const std::string& what, c10::Device device);

/// Objects to a tensor from outside of the step that is more than a number on the CPU.
void object_to_outside(const at::Tensor& tensor, const std::string& what);

/// Objects to a number from outside of the step that is a part of a large tensor.
void object_to_part_of_large(const at::Tensor& tensor);

}  // namespace rondo
