#pragma once

#include <vector>

#include "optim/rule_optimizer.h"

namespace rondo {

/// Steps by the gradient over the root of the sum of all squared gradients. Weight decay is added
/// to the gradient. Source: torch::optim::Adagrad; Duchi, Hazan and Singer 2011 (JMLR 12).
class Adagrad final : public RuleOptimizer {
 public:
  struct Options {
    double lr = 1e-2;                            ///< >= 0
    double lr_decay = 0.0;                       ///< >= 0; lr is divided by 1 + updates * lr_decay
    double eps = 1e-10;                          ///< >= 0
    double weight_decay = 0.0;                   ///< >= 0
    double initial_accumulator_value = 0.0;      ///< >= 0; what the sums begin with
    std::vector<ParamGroupOptions> params = {};  ///< parameters with numbers of their own
    bool decay_biases_and_norms = true;          ///< false: spares parameters of < 2 dimensions
  };

  /// \throws UsageError  for a value out of its range
  explicit Adagrad(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(Adagrad(options)); }

  static const OptimizerTable<Options>& table();
  static const detail::UpdateOperator& update_operator();
};

}  // namespace rondo
