#pragma once

#include <optional>
#include <string>
#include <vector>

#include "callbacks/callback.h"
#include "callbacks/core/metric_direction.h"
#include "core/state_dict.h"
#include "core/timestamp.h"

namespace rondo {

struct State;

/// Builds the schedulers and writes their numbers after each update of their optimizer; fills slot
/// `schedulers`.
class SchedulersCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "schedulers";

  void setup(Trainer& trainer) override;
  void post_setup(Trainer& trainer) override;

  /// Warns of a schedule that ends before the run does, or that jumps.
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t batch_idx) override;
  void run_validation(Trainer& trainer, std::optional<int64_t> loop_idx, bool is_last) override;
  void on_save_checkpoint(Trainer& trainer, StateDict& state) override;
  void check_checkpoint(Trainer& trainer, const StateDict& state) override;
  void on_load_checkpoint(Trainer& trainer, const StateDict& state) override;

  /// Writes an optimizer's numbers for the next update, scheduler by scheduler, between the
  /// scheduler hooks. A host call: it runs in every replay.
  void step(Trainer& trainer, Optimizer& optimizer);

 private:
  /// A scheduler that follows a metric.
  struct Follower {
    size_t scheduler;  ///< its index
    MetricDirection direction;
  };

  void observe(Trainer& trainer, const std::string& when);
  StateList state_of(const State& state, const Optimizer& optimizer) const;
  static void load_followed(Trainer& trainer, Scheduler& scheduler, const StateDict* saved);

  std::vector<std::optional<Timestamp>> written_;  // when, of each optimizer
  std::vector<Follower> followers_;
};

}  // namespace rondo
