#include "metrics/regression_error.h"

#include <ATen/ops/stack.h>
#include <c10/util/StringUtil.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "metrics/register.h"

namespace rondo {

namespace {

enum ErrorSums { Errors, Elements };

/// R2 sums squares of errors; of each batch of targets the squares about its mean; and, for the
/// variance of these means, their parts and the products of parts. All are plain sums, so that
/// virtual ranks can add theirs.
enum R2Sums { SquaredErrors, R2Elements, SquaresAboutMean, MeanParts, PartProducts };

constexpr int64_t kParts = 4;

/// A number as the sum of parts of 13 bits. Their products have 26 bits, so sums of up to 2^27 of
/// them are exact, and a mean that is large against the variance does not drown it.
/// Source: Dekker 1971, Veltkamp's splitting
at::Tensor parts_of(at::Tensor number) {
  constexpr double kSplit = 0x1.0p40 + 1.0;
  std::vector<at::Tensor> parts;
  while (static_cast<int64_t>(parts.size()) + 1 < kParts) {
    const at::Tensor wide = number.mul(kSplit);
    parts.push_back(wide.sub(wide.sub(number)));
    number = number.sub(parts.back());
  }
  parts.push_back(number);
  return at::stack(parts);
}

/// a b - c d, to the last bits also where they cancel. Source: Kahan's algorithm
double difference_of_products(double a, double b, double c, double d) {
  const double subtracted = c * d;
  return std::fma(a, b, -subtracted) + std::fma(-c, d, subtracted);
}

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
    : RegressionError(options,
                      {{"squared_errors"},
                       {"elements"},
                       {"squares_about_mean"},
                       {"mean_parts", {kParts}},
                       {"part_products", {kParts, kParts}}}) {}

void R2::add(const at::Tensor& error, const at::Tensor& target) {
  if (target.numel() == 0) {
    return;
  }
  const auto elements = static_cast<double>(target.numel());
  const at::Tensor first = target.flatten().select(0, 0);  // exact where all targets are equal
  const at::Tensor mean = first.add(target.sub(first).mean());
  const at::Tensor parts = parts_of(mean);
  sum(SquaredErrors).add_(error.square().sum());
  sum(R2Elements).add_(elements);
  sum(SquaresAboutMean).add_(target.sub(mean).square().sum());
  sum(MeanParts).add_(parts.mul(elements));
  sum(PartProducts).add_(parts.unsqueeze(1).mul(parts).mul(elements));
}

/// Of the batches' means about the mean of all, each as often as its batch has elements.
double R2::squares_of_means() const {
  const at::Tensor parts = sum(MeanParts).cpu();
  const at::Tensor products = sum(PartProducts).cpu();
  const auto* const part = parts.data_ptr<double>();
  const auto* const product = products.data_ptr<double>();
  double squares = 0.0;
  for (int64_t i = 0; i < kParts; ++i) {
    for (int64_t j = 0; j < kParts; ++j) {
      squares +=
          difference_of_products(number(R2Elements), product[i * kParts + j], part[i], part[j]);
    }
  }
  return squares / number(R2Elements);
}

double R2::compute() const {
  const double squares = number(SquaresAboutMean) + squares_of_means();
  return squares > 0 ? 1.0 - number(SquaredErrors) / squares
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
