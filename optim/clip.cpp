#include "optim/clip.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/stack.h>

namespace rondo {

namespace {

constexpr double kNormFloor =
    1e-6;  // keeps the quotient finite for zero gradients, as PyTorch does

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

}  // namespace rondo
