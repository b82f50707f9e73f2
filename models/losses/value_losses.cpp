#include "models/losses/value_losses.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/mse_loss.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "core/require.h"
#include "models/internal/list_tensor.h"
#include "models/losses/register.h"

namespace rondo {

at::Tensor MseLoss::losses(const at::Tensor& output, const at::Tensor& target) const {
  return at::mse_loss(output, target, at::Reduction::None);
}

at::Tensor MseLoss::plain_mean(const at::Tensor& output, const at::Tensor& target) const {
  return at::mse_loss(output, target);
}

at::Tensor L1Loss::losses(const at::Tensor& output, const at::Tensor& target) const {
  return at::l1_loss(output, target, at::Reduction::None);
}

at::Tensor L1Loss::plain_mean(const at::Tensor& output, const at::Tensor& target) const {
  return at::l1_loss(output, target);
}

void HuberLoss::check(const Options& options) {
  detail::require(options.delta > 0, "Huber: delta", "> 0", options.delta);
}

HuberLoss::HuberLoss(const Options& options) : options_(options) {
  check(options);
}

at::Tensor HuberLoss::losses(const at::Tensor& output, const at::Tensor& target) const {
  return at::huber_loss(output, target, at::Reduction::None, options_.delta);
}

void QuantileLoss::check(const Options& options) {
  const std::vector<double>& quantiles = options.quantiles;
  detail::require(
      !quantiles.empty() &&
          std::all_of(quantiles.begin(), quantiles.end(), [](double q) { return q > 0 && q < 1; }),
      "Quantile: quantiles",
      "at least 1 number, each in (0, 1)",
      fmt::format("{}", quantiles));
}

QuantileLoss::QuantileLoss(const Options& options) : options_(options) {
  check(options);
}

void QuantileLoss::require_fits(const at::Tensor& output,
                                const at::Tensor& target,
                                std::string_view name) const {
  if (outputs_per_value() == 1) {
    Criterion::require_fits(output, target, name);
    return;
  }
  if (output.dim() == 0 || output.size(-1) != outputs_per_value()) {
    throw ShapeError(
        fmt::format("Quantile: the output needs a last dimension of {}, one number for "
                    "each quantile; it is [{}]",
                    outputs_per_value(),
                    fmt::join(output.sizes(), ", ")));
  }
  Criterion::require_fits(output.select(-1, 0), target, name);
}

at::Tensor QuantileLoss::losses(const at::Tensor& output, const at::Tensor& target) const {
  const at::Tensor quantiles = detail::list_tensor(options_.quantiles, output.options());
  const at::Tensor error = (outputs_per_value() == 1 ? target : target.unsqueeze(-1)) - output;
  return at::maximum(error * quantiles, error * (quantiles - 1));
}

void register_value_losses(Registry<Criterion>& registry) {
  registry.add<MseLoss>("MSE", "Mean of the squared errors.");
  registry.add<L1Loss>("L1", "Mean absolute error.");
  registry.add<L1Loss>("MAE", "L1 by another name.");
  registry.add<HuberLoss>("Huber", "Squared errors, of which large ones grow linearly.")
      .key("delta", &HuberLoss::Options::delta, greater_than(0), "size from which they do");
  registry.add<QuantileLoss>("Quantile", "Pinball loss: the model predicts quantiles.")
      .key("quantiles",
           &QuantileLoss::Options::quantiles,
           each(1, greater_than(0)),
           "shares of the targets that are below each prediction, below 1");
}

}  // namespace rondo
