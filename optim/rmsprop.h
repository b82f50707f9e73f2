#pragma once

#include <vector>

#include "optim/rule_optimizer.h"

namespace rondo {

/// Steps by the gradient over the root of the mean of its squares, of its variance when `centered`.
/// Weight decay is added to the gradient. Source: torch::optim::RMSprop; Tieleman and Hinton 2012
/// (Coursera lecture 6.5); Graves 2013, arXiv:1308.0850 (centered).
class RMSprop final : public RuleOptimizer {
 public:
  struct Options {
    double lr = 1e-2;           ///< >= 0
    double alpha = 0.99;        ///< in [0, 1], share of the mean that is kept
    double eps = 1e-8;          ///< >= 0
    double weight_decay = 0.0;  ///< >= 0
    double momentum = 0.0;      ///< >= 0; no buffer is kept when neither this nor a group sets it
    bool centered = false;      ///< divide by the root of the variance
    std::vector<ParamGroupOptions> params = {};  ///< parameters with numbers of their own
    bool decay_biases_and_norms = true;          ///< false: spares parameters of < 2 dimensions
  };

  /// \throws UsageError  for a value out of its range
  explicit RMSprop(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(RMSprop(options)); }

  static const OptimizerTable<Options>& table();
  static const detail::UpdateOperator& update_operator();
};

}  // namespace rondo
