#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "core/tensor_map.h"

namespace rondo::detail {

/// Mean cross entropy over all rows of logits [..., classes] with labels [...], integers of any
/// width; -100 is left out.
/// \param name  of the labels, for messages
/// \throws ShapeError  when the labels are no integers, or not one for each row
at::Tensor cross_entropy(const at::Tensor& logits,
                         const at::Tensor& label,
                         const std::string& name);

/// "loss", when the batch has labels, and "logits".
Outputs classify(const at::Tensor& logits, const Batch& batch, const std::string& label);

}  // namespace rondo::detail
