#pragma once

#include <array>
#include <vector>

#include "optim/rule_optimizer.h"

namespace rondo {

/// Adam with the largest gradient, decayed, instead of the root of the mean of squares. Weight
/// decay is added to the gradient. Source: torch.optim.Adamax (Python); Kingma and Ba 2015,
/// arXiv:1412.6980, Algorithm 2.
class Adamax final : public RuleOptimizer {
 public:
  struct Options {
    double lr = 2e-3;                            ///< >= 0
    std::array<double, 2> betas = {0.9, 0.999};  ///< each in [0, 1)
    double eps = 1e-8;                           ///< >= 0
    double weight_decay = 0.0;                   ///< >= 0
    std::vector<ParamGroupOptions> params = {};  ///< parameters with numbers of their own
    bool decay_biases_and_norms = true;          ///< false: spares parameters of < 2 dimensions
  };

  /// \throws UsageError  for a value out of its range
  explicit Adamax(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(Adamax(options)); }

  static const OptimizerTable<Options>& table();
  static const detail::UpdateOperator& update_operator();
};

}  // namespace rondo
