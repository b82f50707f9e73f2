#include "metrics/regression_error.h"

#include <ATen/ops/where.h>
#include <c10/util/StringUtil.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "metrics/register.h"

namespace rondo {

namespace {

enum ErrorSums { Errors, Elements };

/// R2 sums squares of errors, targets, and squares of targets. The targets' are taken less a first
/// target, so that a mean that is large beside the variance does not drown it.
enum R2Sums { SquaredErrors, R2Elements, Targets, SquaredTargets, Shift };

template <class T>
void add_error_metric(Registry<Metric>& registry, const char* name, const char* doc) {
  using Options = typename T::Options;
  registry.add<T>(name, doc)
      .key("output", &Options::output, "an output: what the model predicts")
      .key("target", &Options::target, "name in the batch, of the output's shape");
}

}  // namespace

RegressionError::RegressionError(const Options& options, const std::vector<Sum>& sums)
    : SumsMetric(sums), options_(options) {}

void RegressionError::update(const Outputs& outputs, const Batch& batch) {
  const at::Tensor output = outputs[options_.output].detach();
  const at::Tensor& target = batch[options_.target];
  if (output.sizes() != target.sizes()) {
    throw ShapeError(c10::str(name(),
                              ": output \"",
                              options_.output,
                              "\" is ",
                              output.sizes(),
                              ", \"",
                              options_.target,
                              "\" is ",
                              target.sizes()));
  }
  add(output.sub(target).to(at::kDouble), target.to(at::kDouble));
}

MeanSquaredError::MeanSquaredError(const Options& options)
    : RegressionError(options, {{"total"}, {"elements"}}) {}

void MeanSquaredError::add(const at::Tensor& error, const at::Tensor&) {
  sum(Errors).add_(error.square().sum());
  sum(Elements).add_(static_cast<double>(error.numel()));
}

double MeanSquaredError::compute() const {
  return number(Errors) / number(Elements);
}

double RootMeanSquaredError::compute() const {
  return std::sqrt(MeanSquaredError::compute());
}

MeanAbsoluteError::MeanAbsoluteError(const Options& options)
    : RegressionError(options, {{"total"}, {"elements"}}) {}

void MeanAbsoluteError::add(const at::Tensor& error, const at::Tensor&) {
  sum(Errors).add_(error.abs().sum());
  sum(Elements).add_(static_cast<double>(error.numel()));
}

double MeanAbsoluteError::compute() const {
  return number(Errors) / number(Elements);
}

R2::R2(const Options& options)
    : RegressionError(
          options,
          {{"squared_errors"}, {"elements"}, {"targets"}, {"squared_targets"}, {"shift"}}) {}

void R2::add(const at::Tensor& error, const at::Tensor& target) {
  if (target.numel() == 0) {
    return;
  }
  const at::Tensor is_first = sum(R2Elements).eq(0);
  sum(Shift).copy_(at::where(is_first, target.flatten().select(0, 0), sum(Shift)));
  const at::Tensor shifted = target.sub(sum(Shift));
  sum(SquaredErrors).add_(error.square().sum());
  sum(R2Elements).add_(static_cast<double>(error.numel()));
  sum(Targets).add_(shifted.sum());
  sum(SquaredTargets).add_(shifted.square().sum());
}

double R2::compute() const {
  const double variance =
      number(SquaredTargets) - number(Targets) * number(Targets) / number(R2Elements);
  return variance > 0 ? 1.0 - number(SquaredErrors) / variance
                      : std::numeric_limits<double>::quiet_NaN();
}

void register_regression_errors(Registry<Metric>& registry) {
  add_error_metric<MeanSquaredError>(registry, "MeanSquaredError", "Mean of the squared errors.");
  add_error_metric<RootMeanSquaredError>(
      registry, "RootMeanSquaredError", "Root of the mean of the squared errors.");
  add_error_metric<MeanAbsoluteError>(registry, "MeanAbsoluteError", "Mean absolute error.");
  add_error_metric<R2>(registry, "R2", "Share of the target's variance that the output explains.");
}

}  // namespace rondo
