#pragma once

#include <array>
#include <vector>

#include "optim/rule_optimizer.h"

namespace rondo {

/// Steps by the sign of an interpolation of momentum and gradient, with decoupled weight decay.
/// Source: Chen et al. 2023, arXiv:2302.06675, Algorithm 2.
class Lion final : public RuleOptimizer {
 public:
  struct Options {
    double lr = 1e-4;                            ///< >= 0; a third to a tenth of AdamW's
    std::array<double, 2> betas = {0.9, 0.99};   ///< each in [0, 1)
    double weight_decay = 0.0;                   ///< >= 0; three to ten times AdamW's
    std::vector<ParamGroupOptions> params = {};  ///< parameters with numbers of their own
    bool decay_biases_and_norms = true;          ///< false: spares parameters of < 2 dimensions
  };

  /// \throws UsageError  for a value out of its range
  explicit Lion(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(Lion(options)); }

  static const OptimizerTable<Options>& table();
  static const detail::UpdateOperator& update_operator();
};

}  // namespace rondo
