#pragma once

#include <array>
#include <vector>

#include "optim/rule_optimizer.h"

namespace rondo {

/// Steps by the sign of the gradient, in sizes that grow while it keeps its sign and shrink when it
/// changes; for large batches. Source: torch.optim.Rprop (Python); Riedmiller and Braun 1993.
class Rprop final : public RuleOptimizer {
 public:
  struct Options {
    double lr = 1e-2;                               ///< >= 0; the first step's size
    std::array<double, 2> etas = {0.5, 1.2};        ///< shrinks by [0] in (0, 1), grows by [1] > 1
    std::array<double, 2> step_sizes = {1e-6, 50};  ///< the least and the largest, >= 0
    std::vector<ParamGroupOptions> params = {};     ///< parameters with numbers of their own
  };

  /// \throws UsageError  for a value out of its range
  explicit Rprop(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(Rprop(options)); }

  static const OptimizerTable<Options>& table();
  static const detail::UpdateOperator& update_operator();
};

}  // namespace rondo
