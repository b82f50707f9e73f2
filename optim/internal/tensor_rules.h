#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include "optim/optimizer.h"

// What optimizers that are plain tensor work share. Numbers are 0-dim tensors: nothing is read on
// the host.

namespace rondo::detail {

/// The mean of all elements' squares, rooted.
at::Tensor root_mean_square(const at::Tensor& values);

/// a / b, or 1 where either is 0.
at::Tensor ratio_or_one(const at::Tensor& a, const at::Tensor& b);

/// Moves Adam's states "step", "exp_avg" and "exp_avg_sq" of a parameter on. \return the step that
/// they make, times no learning rate
at::Tensor adam_step(ParamGroup& group, Parameter& parameter);

}  // namespace rondo::detail
