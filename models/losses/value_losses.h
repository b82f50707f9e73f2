#pragma once

#include <cstdint>
#include <vector>

#include "models/losses/criterion.h"

namespace rondo {

/// Mean of the squared errors.  \capture safe
class MseLoss final : public Criterion {
 public:
  Targets targets() const override { return Targets::Values; }

 protected:
  at::Tensor losses(const at::Tensor& output, const at::Tensor& target) const override;
  at::Tensor plain_mean(const at::Tensor& output, const at::Tensor& target) const override;
};

/// Mean absolute error.  \capture safe
class L1Loss final : public Criterion {
 public:
  Targets targets() const override { return Targets::Values; }

 protected:
  at::Tensor losses(const at::Tensor& output, const at::Tensor& target) const override;
  at::Tensor plain_mean(const at::Tensor& output, const at::Tensor& target) const override;
};

/// Half the squared error up to `delta`; beyond it grows as the error does, times `delta`.
/// \capture safe
/// Source: Huber 1964, "Robust Estimation of a Location Parameter".
class HuberLoss final : public Criterion {
 public:
  struct Options {
    double delta = 1.0;  ///< > 0
  };

  /// \throws UsageError  for options out of range
  static void check(const Options& options);

  explicit HuberLoss(const Options& options);

  Targets targets() const override { return Targets::Values; }

 protected:
  at::Tensor losses(const at::Tensor& output, const at::Tensor& target) const override;

 private:
  Options options_;
};

/// Quantile (pinball) loss, for predictions that say how uncertain they are: an error e = target -
/// output costs q · e, or (q - 1) · e when it is negative. The mean is over quantiles too.
/// The output has a last dimension with one number for each quantile, or the target's shape for a
/// single quantile.  \capture safe
/// Source: Koenker and Bassett 1978, "Regression Quantiles".
class QuantileLoss final : public Criterion {
 public:
  struct Options {
    std::vector<double> quantiles = {0.1, 0.5, 0.9};  ///< at least one, each in (0, 1)
  };

  /// \throws UsageError  for options out of range
  static void check(const Options& options);

  explicit QuantileLoss(const Options& options);

  Targets targets() const override { return Targets::Values; }

  int64_t outputs_per_value() const override {
    return static_cast<int64_t>(options_.quantiles.size());
  }

 protected:
  void require_fits(const at::Tensor& output,
                    const at::Tensor& target,
                    std::string_view name) const override;
  at::Tensor losses(const at::Tensor& output, const at::Tensor& target) const override;

 private:
  Options options_;
};

}  // namespace rondo
