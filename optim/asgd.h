#pragma once

#include <vector>

#include "optim/rule_optimizer.h"

namespace rondo {

/// SGD that also keeps the mean of the weights since update `t0`, in the state "ax". Source:
/// torch.optim.ASGD (Python); Polyak and Juditsky 1992; Bottou 2012 (its schedule of eta).
class ASGD final : public RuleOptimizer {
 public:
  struct Options {
    double lr = 1e-2;                            ///< >= 0
    double lambd = 1e-4;                         ///< >= 0; decay of the weights
    double alpha = 0.75;                         ///< >= 0; eta falls with the updates to this power
    double t0 = 1e6;                             ///< >= 0; the update at which averaging begins
    double weight_decay = 0.0;                   ///< >= 0; added to the gradient
    std::vector<ParamGroupOptions> params = {};  ///< parameters with numbers of their own
    bool decay_biases_and_norms = true;          ///< false: spares parameters of < 2 dimensions
  };

  /// \throws UsageError  for a value out of its range
  explicit ASGD(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(ASGD(options)); }

  static const OptimizerTable<Options>& table();
  static const detail::UpdateOperator& update_operator();
};

}  // namespace rondo
