#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "core/tensor_map.h"

namespace rondo::detail {

/// Mean cross entropy over all rows of logits [..., classes] with integer labels [...].
at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& label);

/// "loss", when the batch has labels, and "logits".
Outputs classify(const at::Tensor& logits, const Batch& batch, const std::string& label);

}  // namespace rondo::detail
