#pragma once

#include <array>
#include <vector>

#include "optim/rule_optimizer.h"

namespace rondo {

/// Steps by the mean of the gradients over the root of the mean of their squares. Weight decay is
/// added to the gradient. A scheduler may move lr, beta1, beta2, eps and weight_decay. Source:
/// torch::optim::Adam; Kingma and Ba 2015, arXiv:1412.6980, Algorithm 1; Reddi et al. 2018,
/// arXiv:1904.09237 (amsgrad).
class Adam final : public RuleOptimizer {
 public:
  struct Options {
    double lr = 1e-3;                            ///< >= 0
    std::array<double, 2> betas = {0.9, 0.999};  ///< each in [0, 1)
    double eps = 1e-8;                           ///< >= 0
    double weight_decay = 0.0;                   ///< >= 0
    bool amsgrad = false;                        ///< divide by the largest mean of squares so far
    std::vector<ParamGroupOptions> params = {};  ///< parameters with numbers of their own
    bool decay_biases_and_norms = true;          ///< false: spares parameters of < 2 dimensions
  };

  /// \throws UsageError  for a value out of its range
  explicit Adam(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(Adam(options)); }

  static const OptimizerTable<Options>& table();
  static const detail::UpdateOperator& update_operator();
};

/// Adam with decoupled weight decay: each update begins with `p *= 1 - lr weight_decay`.
/// Source: torch::optim::AdamW; Loshchilov and Hutter 2019, arXiv:1711.05101, Algorithm 2.
class AdamW final : public RuleOptimizer {
 public:
  struct Options {
    double lr = 1e-3;                            ///< >= 0
    std::array<double, 2> betas = {0.9, 0.999};  ///< each in [0, 1)
    double eps = 1e-8;                           ///< >= 0
    double weight_decay = 0.01;                  ///< >= 0
    bool amsgrad = false;                        ///< divide by the largest mean of squares so far
    std::vector<ParamGroupOptions> params = {};  ///< parameters with numbers of their own
    bool decay_biases_and_norms = true;          ///< false: spares parameters of < 2 dimensions
  };

  /// \throws UsageError  for a value out of its range
  explicit AdamW(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(AdamW(options)); }

  static const OptimizerTable<Options>& table();
  static const detail::UpdateOperator& update_operator();
};

/// Adam with a decoupled weight decay that counts in shares: each update multiplies the weights by
/// `1 - weight_decay * lr / initial_lr`. Source: Composer's DecoupledAdamW; Loshchilov and Hutter
/// 2019, arXiv:1711.05101, Algorithm 2.
class DecoupledAdamW final : public RuleOptimizer {
 public:
  struct Options {
    double lr = 1e-3;                           ///< >= 0
    std::array<double, 2> betas = {0.9, 0.95};  ///< each in [0, 1)
    double eps = 1e-8;                          ///< >= 0
    double weight_decay = 1e-5;                 ///< >= 0; a share that lr does not scale
    bool amsgrad = false;                       ///< divide by the largest mean of squares so far
    double initial_lr = 0.0;  ///< >= 0; lr at which the whole of weight_decay counts; 0: `lr`
    std::vector<ParamGroupOptions> params = {};  ///< parameters with numbers of their own
    bool decay_biases_and_norms = true;          ///< false: spares parameters of < 2 dimensions
  };

  /// \throws UsageError  for a value out of its range
  explicit DecoupledAdamW(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(DecoupledAdamW(options)); }

  static const OptimizerTable<Options>& table();
  static const detail::UpdateOperator& update_operator();
};

}  // namespace rondo
