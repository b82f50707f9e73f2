#pragma once

#include <vector>

#include "optim/rule_optimizer.h"

namespace rondo {

/// Stochastic gradient descent with momentum: `b = momentum b + (1 - dampening) g`, `p -= lr b`,
/// where the first `b` is `g` and weight decay is added to `g`. A scheduler may move lr, momentum,
/// dampening and weight_decay. Source: torch::optim::SGD; Sutskever et al. 2013 (momentum and
/// Nesterov's form of it).
class Sgd final : public RuleOptimizer {
 public:
  struct Options {
    double lr = 1e-3;           ///< >= 0
    double momentum = 0.0;      ///< >= 0; no buffer is kept when neither this nor a group sets it
    double dampening = 0.0;     ///< in [0, 1]
    double weight_decay = 0.0;  ///< >= 0
    bool nesterov = false;      ///< needs momentum > 0 and dampening = 0
    std::vector<ParamGroupOptions> params = {};  ///< parameters with numbers of their own
    bool decay_biases_and_norms = true;          ///< false: spares parameters of < 2 dimensions
  };

  /// \throws UsageError  for a value out of its range
  explicit Sgd(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(Sgd(options)); }

  static const OptimizerTable<Options>& table();
  static const detail::UpdateOperator& update_operator();
};

/// SGD with decoupled weight decay: each update begins with
/// `p *= 1 - weight_decay * lr / initial_lr`. Source: Composer's DecoupledSGDW; Loshchilov and
/// Hutter 2019, arXiv:1711.05101, Algorithm 1.
class DecoupledSGDW final : public RuleOptimizer {
 public:
  struct Options {
    double lr = 0.1;            ///< >= 0
    double momentum = 0.0;      ///< >= 0; no buffer is kept when neither this nor a group sets it
    double dampening = 0.0;     ///< in [0, 1]
    double weight_decay = 0.0;  ///< >= 0; a share that lr does not scale: 1e-4 is much
    bool nesterov = false;      ///< needs momentum > 0 and dampening = 0
    double initial_lr = 0.0;    ///< >= 0; lr at which the whole of weight_decay counts; 0: `lr`
    std::vector<ParamGroupOptions> params = {};  ///< parameters with numbers of their own
    bool decay_biases_and_norms = true;          ///< false: spares parameters of < 2 dimensions
  };

  /// \throws UsageError  for a value out of its range
  explicit DecoupledSGDW(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(DecoupledSGDW(options)); }

  static const OptimizerTable<Options>& table();
  static const detail::UpdateOperator& update_operator();
};

}  // namespace rondo
