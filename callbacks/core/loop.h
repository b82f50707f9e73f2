#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "callbacks/callback.h"
#include "core/time.h"

namespace rondo {

/// LoopOptions::device_train_microbatch_size: found out while the run trains.
constexpr int64_t kAutoMicroBatch = 0;

/// How long a run is, when it validates and how many batches form an update. All counts are
/// updates, at most Time::kMost.
struct LoopOptions {
  std::optional<int64_t> max_steps;   ///< total updates of the run, > 0
  std::optional<int64_t> num_steps;   ///< that many more updates, > 0; not for runs that resume
  std::optional<int64_t> num_epochs;  ///< passes over the data, >= 1; 1 if no length is given
  std::optional<Time> max_duration;   ///< total of the run in any unit, such as "2e6tok" or "1h30m"
  std::optional<int64_t> steps_per_epoch;  ///< updates that count as a pass for num_epochs
  Time eval_frequency = 1.0;       ///< between two validations; a fraction of the run; 0: never
  std::optional<Time> eval_steps;  ///< batches of a validation, or a share of its pass; absent: all
  int64_t grad_accum_steps = 1;    ///< batches of an update, >= 1
  /// Samples in a micro-batch, >= 1: each step sees one micro-batch of a batch. Absent: a step sees
  /// a whole batch. kAutoMicroBatch, "auto" in a config: as many as fit into memory, see
  /// GradAccumCallback.
  std::optional<int64_t> device_train_microbatch_size;
  /// Bytes that the process may take on a CPU, > 0; only with kAutoMicroBatch. Absent: as many as
  /// it gets.
  std::optional<int64_t> memory_limit;
  bool accumulate_on_tokens = false;  ///< whether tokens, not samples, weight a group's batches
  std::optional<int64_t> train_subset_num_batches;  ///< batches after which a pass ends, >= 1
  double scale_schedule_ratio = 1.0;  ///< stretches the run and its schedules alike, > 0
};

/// Overrides of the run's options for one call of `Trainer::fit`.
struct FitOptions {
  std::optional<Time> duration = {};        ///< how much more to train, such as "1ep"; > 0
  std::optional<Time> eval_frequency = {};  ///< between two validations of this fit; 0: none
  bool reset_time = false;  ///< counts from zero again; weights and optimizers stay as they are
};

/// Decides what comes next and when a run is over; the callback of slot `loop`.
class Loop : public CoreCallback {
 public:
  static constexpr const char* kSlot = "loop";

  /// Batches of a validation, or a share of its pass; nothing for a whole pass.
  virtual std::optional<Time> eval_steps() const = 0;

  /// The family of hooks that a validation fires: "validate", or a validation loop's own name.
  virtual std::string validation_hook() const { return "validate"; }
};

struct ValidationLoopOptions {
  std::optional<Time> eval_steps;  ///< batches, or a share of the pass; > 0, a pass when absent
  std::string hook = "validate";   ///< family of its hooks: `on_<hook>_start` and so on
};

/// The loop of one validation. With its own hook family, `on_<hook>_start`, `_end`,
/// `_batch_start`, `_batch_end`, `_step_start` and `_step_end` fire through `Callback::on_custom`
/// instead of the `on_validate_…` hooks. The core callbacks implement only the latter. A callback
/// must therefore set eval mode and gather loss and metrics in the family's hooks
/// (`model.module().eval()`, `Trainer::log_metrics`).
class ValidationLoop final : public Loop {
 public:
  using Options = ValidationLoopOptions;

  explicit ValidationLoop(const Options& options = {});

  std::optional<Time> eval_steps() const override { return options_.eval_steps; }

  std::string validation_hook() const override { return options_.hook; }

  void on_enter_validate(Trainer&, Cleanup&, const DataLoader&, Loop&) override;

 private:
  Options options_;
};

/// Pushes the guards that report exceptions to callbacks; its options define the run's plan.
class TrainingLoop final : public Loop {
 public:
  using Options = LoopOptions;

  /// \throws UsageError  naming the option that is out of range or that excludes another
  explicit TrainingLoop(const Options& options);

  std::optional<Time> eval_steps() const override { return options_.eval_steps; }

  const Options& options() const { return options_; }

  /// The loop of the validations between two stages of training, and of `Trainer::validate`.
  ValidationLoop& validation_loop() { return validation_; }

  void on_enter_fit(Trainer&, Cleanup&, const DataLoader&, const Loaders&, Loop&) override;
  void on_enter_train(Trainer&, Cleanup&, const DataLoader&, Loop&, int64_t) override;
  void on_save_checkpoint(Trainer&, StateDict&) override;
  void check_checkpoint(Trainer&, const StateDict&) override;
  void on_load_checkpoint(Trainer&, const StateDict&) override;

 private:
  Options options_;
  ValidationLoop validation_;
};

}  // namespace rondo
