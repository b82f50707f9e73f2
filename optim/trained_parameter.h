#pragma once

#include <ATen/core/Tensor.h>

#include "optim/optimizer.h"

namespace rondo {

/// What an optimizer keeps for a tensor of the model; null when it does not train it.
const Parameter* trained_parameter(const Optimizer& optimizer, const at::Tensor& tensor);

}  // namespace rondo
