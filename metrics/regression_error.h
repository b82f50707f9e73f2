#pragma once

#include <string>

#include "metrics/sums_metric.h"

namespace rondo {

/// What compares an output with a target of the same shape over all elements: a longer batch counts
/// for more.
class RegressionError : public SumsMetric {
 public:
  struct Options {
    std::string output = "logits";  ///< what the model predicts
    std::string target = "target";  ///< in the batch
  };

  Needs needs() const final { return {{options_.output}, {options_.target}}; }

  /// \throws ShapeError  when the shapes differ, rather than broadcast
  /// \capture safe
  void update(const Outputs& outputs, const Batch& batch) final;

 protected:
  RegressionError(const Options& options, const std::vector<Sum>& sums);

  /// \param error   output less target, float64
  /// \param target  float64
  virtual void add(const at::Tensor& error, const at::Tensor& target) = 0;

 private:
  Options options_;
};

/// Mean of the squared errors.
class MeanSquaredError : public RegressionError {
 public:
  explicit MeanSquaredError(const Options& options);

  std::string name() const override { return "mean_squared_error"; }

  std::optional<Better> better() const override { return Better::Lower; }

  double compute() const override;

 protected:
  void add(const at::Tensor& error, const at::Tensor& target) final;
};

/// Root of the mean of the squared errors, in the target's unit.
class RootMeanSquaredError final : public MeanSquaredError {
 public:
  explicit RootMeanSquaredError(const Options& options) : MeanSquaredError(options) {}

  std::string name() const override { return "root_mean_squared_error"; }

  double compute() const override;
};

/// Mean absolute error.
class MeanAbsoluteError final : public RegressionError {
 public:
  explicit MeanAbsoluteError(const Options& options);

  std::string name() const override { return "mean_absolute_error"; }

  std::optional<Better> better() const override { return Better::Lower; }

  double compute() const override;

 private:
  void add(const at::Tensor& error, const at::Tensor& target) override;
};

/// Coefficient of determination: 1 less the share of the target's variance that is left in the
/// errors, over all elements together. NaN for a target that is constant.
class R2 final : public RegressionError {
 public:
  explicit R2(const Options& options);

  std::string name() const override { return "r2"; }

  std::optional<Better> better() const override { return Better::Higher; }

  double compute() const override;

 private:
  void add(const at::Tensor& error, const at::Tensor& target) override;
  double squares_of_means() const;
};

}  // namespace rondo
