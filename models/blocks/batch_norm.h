#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/batch_norm.h>
#include <torch/nn/modules/batchnorm.h>

namespace rondo::detail {

/// A batch norm of signals with any number of dimensions, [B, channels, ...]. A batch with one
/// number for each channel has no variance: it is normalised as in an evaluation.
inline at::Tensor batch_norm(const torch::nn::BatchNorm1d& norm, const at::Tensor& x) {
  return at::batch_norm(x,
                        norm->weight,
                        norm->bias,
                        norm->running_mean,
                        norm->running_var,
                        norm->is_training() && x.numel() > x.size(1),
                        norm->options.momentum().value_or(0.0),
                        norm->options.eps(),
                        /*cudnn_enabled=*/false);
}

}  // namespace rondo::detail
