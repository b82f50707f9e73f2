#pragma once

#include <vector>

#include "optim/rule_optimizer.h"

namespace rondo {

/// Steps by the gradient times the root of the mean of squared steps over that of squared
/// gradients. Weight decay is added to the gradient. Source: torch.optim.Adadelta (Python); Zeiler
/// 2012, arXiv:1212.5701, Algorithm 1.
class Adadelta final : public RuleOptimizer {
 public:
  struct Options {
    double lr = 1.0;                             ///< >= 0
    double rho = 0.9;                            ///< in [0, 1], share of the means that is kept
    double eps = 1e-6;                           ///< >= 0
    double weight_decay = 0.0;                   ///< >= 0
    std::vector<ParamGroupOptions> params = {};  ///< parameters with numbers of their own
    bool decay_biases_and_norms = true;          ///< false: spares parameters of < 2 dimensions
  };

  /// \throws UsageError  for a value out of its range
  explicit Adadelta(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(Adadelta(options)); }

  static const OptimizerTable<Options>& table();
  static const detail::UpdateOperator& update_operator();
};

}  // namespace rondo
