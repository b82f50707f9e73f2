#include "optim/muon.h"

#include <ATen/ops/matmul.h>

#include <algorithm>
#include <cmath>

#include "core/glob.h"
#include "optim/internal/tensor_rules.h"

namespace rondo {

namespace {

/// Brings all singular values of a matrix near 1, by a polynomial whose slope at 0 is largest.
at::Tensor orthogonalised(const at::Tensor& matrix, int64_t iterations) {
  constexpr double kA = 3.4445;
  constexpr double kB = -4.7750;
  constexpr double kC = 2.0315;
  constexpr double kLeastNorm = 1e-7;
  const bool is_tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = is_tall ? matrix.t() : matrix;
  x = x / (x.norm() + kLeastNorm);
  for (int64_t i = 0; i < iterations; ++i) {
    const at::Tensor product = at::matmul(x, x.t());
    x = kA * x + at::matmul(kB * product + kC * at::matmul(product, product), x);
  }
  return is_tall ? x.t() : x;
}

}  // namespace

const OptimizerTable<Muon::Options>& Muon::table() {
  static const auto made = [] {
    OptimizerTable<Options> table("Muon", "Orthogonalised momentum; AdamW for what is no matrix.");
    table.number("lr", &Options::lr, at_least(0), "step size of matrices")
        .number("momentum", &Options::momentum, below_one(), "share of the mean that is kept")
        .number("weight_decay",
                &Options::weight_decay,
                at_least(0),
                "share of lr by which each weight shrinks at an update")
        .number("adamw_lr", &Options::adamw_lr, at_least(0), "step size of the rest")
        .numbers("betas",
                 {"beta1", "beta2"},
                 &Options::betas,
                 below_one(),
                 "decay rates of the two moments of the rest")
        .number("eps", &Options::eps, at_least(0), "added to the denominator of the rest")
        .key("nesterov", &Options::nesterov, "look ahead along the momentum")
        .key("ns_steps", &Options::ns_steps, at_least(1), "iterations of Newton and Schulz")
        .key("adamw", &Options::adamw, "globs of matrices for AdamW, such as embeddings and heads");
    return table;
  }();
  return made;
}

Muon::Muon(const Options& options)
    : Optimizer(table().checked_numbers(options), {}, groups_in(options), {"step"}),
      options_(options) {}

bool Muon::is_matrix(const std::string& name, const at::Tensor& value) const {
  return value.dim() > 1 && !matches_any(options_.adamw, name);
}

std::vector<StateShape> Muon::states_of(const NamedTensor& parameter) const {
  const std::vector<int64_t> sizes = parameter.second.sizes().vec();
  if (is_matrix(parameter.first, parameter.second)) {
    return {{"momentum_buffer", sizes}};
  }
  return {{"exp_avg", sizes}, {"exp_avg_sq", sizes}};
}

void Muon::update_matrix(ParamGroup& group, Parameter& p) const {
  const at::Tensor& momentum = group["momentum"];
  const at::Tensor fresh = p.grad() * (1 - momentum);
  p.state("step").add_(1);
  const at::Tensor mean = p.state("momentum_buffer").mul_(momentum).add_(fresh);
  const at::Tensor direction = (options_.nesterov ? fresh + mean * momentum : mean).flatten(1);
  const double ratio =
      static_cast<double>(direction.size(0)) / static_cast<double>(direction.size(1));
  const at::Tensor step =
      orthogonalised(direction, options_.ns_steps) * std::sqrt(std::max(1.0, ratio));
  p.value.mul_(1 - group["lr"] * group["weight_decay"])
      .sub_(step.reshape(p.value.sizes()) * group["lr"]);
}

void Muon::update(ParamGroup& group) {
  for (Parameter& p : group.params) {
    if (!p.grad().defined()) {
      continue;
    }
    if (is_matrix(p.name, p.value)) {
      update_matrix(group, p);
    } else {
      const at::Tensor& lr = group["adamw_lr"];
      p.value.mul_(1 - lr * group["weight_decay"]);
      p.value.sub_(detail::adam_step(group, p) * lr);
    }
  }
}

}  // namespace rondo
