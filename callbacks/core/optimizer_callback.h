#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "callbacks/callback.h"
#include "core/named_tensor.h"

namespace rondo {

class ShardedUpdates;
struct NamedOptimizer;

/// Builds the optimizer over the model's parameters, or several, each over those that its globs
/// pick; fills slot `optimizer`. Without one the Trainer only evaluates. Warns of parameters that a
/// module got later, which stay untrained.
class OptimizerCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "optimizer";

  /// \throws UsageError  when one gets no parameter, or two get the same
  void setup(Trainer& trainer) override;

  /// \throws UsageError  without an optimizer
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  void on_train_start(Trainer& trainer, Model&, const DataLoader&, Loop&, int64_t) override;
  void on_train_end(Trainer& trainer, Model&, Loop&, int64_t) override;
  void on_save_checkpoint(Trainer& trainer, StateDict& state) override;
  void check_checkpoint(Trainer& trainer, const StateDict& state) override;

  /// A checkpoint's numbers override those of this run's options, with a warning.
  void on_load_checkpoint(Trainer& trainer, const StateDict& state) override;

 private:
  using Numbers = std::vector<std::pair<std::string, double>>;

  void add(Trainer& trainer, const NamedOptimizer& wanted, const NamedTensors& parameters);
  void warn_of_other_numbers(Trainer& trainer, size_t optimizer) const;
  void warn_of_untrained(Trainer& trainer);

  std::vector<std::vector<Numbers>> configured_;          // one a group, of each optimizer
  std::vector<std::shared_ptr<ShardedUpdates>> sharded_;  // one an optimizer; null: it is not
  std::vector<std::string> untrained_;                    // parameters that were warned of
};

}  // namespace rondo
