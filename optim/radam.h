#pragma once

#include <array>
#include <vector>

#include "optim/rule_optimizer.h"

namespace rondo {

/// Adam whose adaptive step waits until the mean of squares is reliable: before, and while few
/// updates were made, it steps by the momentum alone. Source: torch.optim.RAdam (Python); Liu et
/// al. 2020, arXiv:1908.03265, Algorithm 2.
class RAdam final : public RuleOptimizer {
 public:
  struct Options {
    double lr = 1e-3;                            ///< >= 0
    std::array<double, 2> betas = {0.9, 0.999};  ///< each in [0, 1)
    double eps = 1e-8;                           ///< >= 0
    double weight_decay = 0.0;                   ///< >= 0
    bool decoupled_weight_decay = false;         ///< as in AdamW; else added to the gradient
    std::vector<ParamGroupOptions> params = {};  ///< parameters with numbers of their own
    bool decay_biases_and_norms = true;          ///< false: spares parameters of < 2 dimensions
  };

  /// \throws UsageError  for a value out of its range
  explicit RAdam(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(RAdam(options)); }

  static const OptimizerTable<Options>& table();
  static const detail::UpdateOperator& update_operator();
};

}  // namespace rondo
