#pragma once

#include <vector>

#include "optim/optimizer.h"
#include "optim/optimizer_table.h"

namespace rondo {

/// SGD with momentum whose step for each parameter is in proportion to the parameter: for large
/// batches. Source: You, Gitman and Ginsburg 2017, arXiv:1708.03888, Algorithm 1.
class LARS final : public Optimizer {
 public:
  struct Options {
    double lr = 0.1;                   ///< >= 0
    double momentum = 0.9;             ///< >= 0
    double weight_decay = 0.0;         ///< >= 0; added to the gradient
    double trust_coefficient = 0.001;  ///< >= 0; step over parameter, both as norms, times lr
    double eps = 1e-8;                 ///< >= 0; added to the gradient's norm
    std::vector<ParamGroupOptions> params = {};  ///< parameters with numbers of their own
    bool decay_biases_and_norms = true;          ///< false: spares parameters of < 2 dimensions
  };

  /// \throws UsageError  for a value out of its range
  explicit LARS(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(LARS(options)); }

  static const OptimizerTable<Options>& table();

 protected:
  void update(ParamGroup& group) override;
};

}  // namespace rondo
