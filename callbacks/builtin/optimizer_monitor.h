#pragma once

#include "callbacks/callback.h"

namespace rondo {

/// Logs L2 norms on log steps: `l2_norm/grad/global` of the gradients, unscaled and not yet
/// clipped, `l2_norm/param/global` of the trained parameters after the update, and of what the
/// optimizer keeps for them, such as `l2_norm/exp_avg/global`; by parameter as well unless
/// `only_global`. Where ranks share the optimizer's state, nothing of it is logged.
/// Source: Composer's OptimizerMonitor.
class OptimizerMonitor final : public Callback {
 public:
  struct Options {
    bool only_global = false;
  };

  explicit OptimizerMonitor(const Options& options) : options_(options) {}

  void on_before_optimizer_step(Trainer& trainer, Model&, Optimizer& optimizer) override;
  void on_after_optimizer_step(Trainer& trainer, Model&, Optimizer& optimizer) override;

 private:
  Options options_;
};

}  // namespace rondo
