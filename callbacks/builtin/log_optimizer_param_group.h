#pragma once

#include <string>
#include <vector>

#include "callbacks/callback.h"

namespace rondo {

/// Logs numbers of the optimizer's groups after each update, as `<key>/<group index>`: the values
/// just used.
class LogOptimizerParamGroup final : public Callback {
 public:
  struct Options {
    std::vector<std::string> keys = {"lr"};  ///< numbers of the optimizer
  };

  explicit LogOptimizerParamGroup(const Options& options) : options_(options) {}

  /// \throws UsageError  when the optimizer has no such number
  void setup(Trainer& trainer) override;
  void on_after_optimizer_step(Trainer& trainer, Model&, Optimizer& optimizer) override;

 private:
  Options options_;
};

}  // namespace rondo
