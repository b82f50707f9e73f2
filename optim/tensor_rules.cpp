#include "optim/internal/tensor_rules.h"

#include <ATen/ops/logical_and.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/where.h>

namespace rondo::detail {

at::Tensor root_mean_square(const at::Tensor& values) {
  return values.square().mean().sqrt();
}

at::Tensor ratio_or_one(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor ratio = a / b;
  return at::where(at::logical_and(a.gt(0), b.gt(0)), ratio, at::ones_like(ratio));
}

at::Tensor adam_step(ParamGroup& group, Parameter& parameter) {
  const at::Tensor& beta1 = group["beta1"];
  const at::Tensor& beta2 = group["beta2"];
  const at::Tensor step = parameter.state("step").add_(1);
  const at::Tensor& grad = parameter.grad();
  const at::Tensor mean = parameter.state("exp_avg").mul_(beta1).add_(grad * (1 - beta1));
  const at::Tensor squares =
      parameter.state("exp_avg_sq").mul_(beta2).add_(grad.square() * (1 - beta2));
  const at::Tensor root = (squares / (1 - at::pow(beta2, step))).sqrt();
  return mean / (1 - at::pow(beta1, step)) / (root + group["eps"]);
}

}  // namespace rondo::detail
