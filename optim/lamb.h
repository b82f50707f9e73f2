#pragma once

#include <array>
#include <vector>

#include "optim/optimizer.h"
#include "optim/optimizer_table.h"

namespace rondo {

/// Adam whose step for each parameter is as large as the parameter, times lr: for large batches.
/// Source: You et al. 2020, arXiv:1904.00962, Algorithm 2, with the norm itself as its function
/// phi.
class LAMB final : public Optimizer {
 public:
  struct Options {
    double lr = 1e-3;                            ///< >= 0
    std::array<double, 2> betas = {0.9, 0.999};  ///< each in [0, 1)
    double eps = 1e-6;                           ///< >= 0
    double weight_decay = 0.01;                  ///< >= 0; added to the step before it is scaled
    std::vector<ParamGroupOptions> params = {};  ///< parameters with numbers of their own
    bool decay_biases_and_norms = true;          ///< false: spares parameters of < 2 dimensions
  };

  /// \throws UsageError  for a value out of its range
  explicit LAMB(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(LAMB(options)); }

  static const OptimizerTable<Options>& table();

 protected:
  void update(ParamGroup& group) override;
};

}  // namespace rondo
