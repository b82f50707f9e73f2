#pragma once

#include <vector>

#include "models/losses/criterion.h"

namespace rondo {

/// Binary cross entropy of the sigmoid of each logit with a target of the same shape, in [0, 1] or
/// 0 and 1 as integers: for two classes, or several labels at a time. Integers that are -100, as
/// masks have them where no class is known, are left out.  \capture safe
class BinaryCrossEntropyLoss final : public Criterion {
 public:
  struct Options {
    /// What a target of 1 counts beside one of 0, >= 0: one number for each of the last dimension,
    /// or one for all; none: 1.
    std::vector<double> pos_weight = {};
  };

  /// \throws UsageError  for options out of range
  static void check(const Options& options);

  explicit BinaryCrossEntropyLoss(const Options& options);

  Targets targets() const override { return Targets::Shares; }

 protected:
  at::Tensor losses(const at::Tensor& output, const at::Tensor& target) const override;
  at::Tensor counts(const at::Tensor& target) const override;

 private:
  Options options_;
};

/// Kullback-Leibler divergence of the softmax of logits [..., classes] from target shares
/// [..., classes], which add up to 1: the mean over rows, as PyTorch's "batchmean".  \capture safe
class KlLoss final : public Criterion {
 public:
  Targets targets() const override { return Targets::Shares; }

 protected:
  at::Tensor losses(const at::Tensor& output, const at::Tensor& target) const override;
};

}  // namespace rondo
