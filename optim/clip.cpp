#include "optim/clip.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/stack.h>

namespace rondo {

namespace {

constexpr double kNormFloor =
    1e-6;  // keeps the quotient finite for zero gradients, as PyTorch does

constexpr double kLeastWeightNorm = 1e-3;  // so that weights of zero can grow; the paper's epsilon

/// One norm a unit, in a shape that multiplies the tensor.
at::Tensor norms_of_units(const at::Tensor& tensor) {
  if (tensor.dim() <= 1) {
    return tensor.norm();
  }
  std::vector<int64_t> inputs;
  for (int64_t dim = 1; dim < tensor.dim(); ++dim) {
    inputs.push_back(dim);
  }
  return tensor.norm(2, inputs, /*keepdim=*/true);
}

}  // namespace

at::Tensor clip_by_norm_(const std::vector<at::Tensor>& grads, double max_norm) {
  if (grads.empty()) {
    return {};
  }
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> norms;
  norms.reserve(grads.size());
  for (const at::Tensor& grad : grads) {
    norms.push_back(grad.norm());
  }
  at::Tensor norm = at::stack(norms).norm();
  const at::Tensor scale = at::clamp_max(norm.add(kNormFloor).reciprocal().mul_(max_norm), 1.0);
  for (const at::Tensor& grad : grads) {
    grad.mul_(scale);
  }
  return norm;
}

void clip_by_value_(const std::vector<at::Tensor>& grads, double limit) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& grad : grads) {
    grad.clamp_(-limit, limit);
  }
}

void clip_by_ratio_(const NamedTensors& parameters, double ratio) {
  const at::NoGradGuard no_grad;
  for (const NamedTensor& parameter : parameters) {
    const at::Tensor grad = parameter.second.grad();
    if (grad.defined()) {
      const at::Tensor most =
          norms_of_units(parameter.second).clamp_min(kLeastWeightNorm).mul(ratio);
      const at::Tensor now = norms_of_units(grad).clamp_min(kNormFloor);
      grad.mul_(most.div(now).clamp_max(1.0));
    }
  }
}

}  // namespace rondo
