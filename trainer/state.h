#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "callbacks/results.h"
#include "core/metric_values.h"
#include "core/timestamp.h"
#include "data/data_executor.h"
#include "distributed/communicator.h"
#include "models/model.h"
#include "optim/optimizer.h"
#include "optim/scheduler.h"

namespace rondo {

class DataLoader;
class RunPlan;

/// The parts of a run and what changes while it runs. Each field's comment names the core callback
/// or stage that writes it; all others only read it.
struct State {
  std::shared_ptr<Communicator> communicator;          // the Trainer: its ranks, never null
  std::unique_ptr<Backend> backend;                    // slot backend
  std::unique_ptr<Model> model;                        // slot model
  std::vector<std::unique_ptr<Optimizer>> optimizers;  // slot optimizer; empty: evaluation only
  Optimizer* optimizer = nullptr;                      // the first of them, usually the only one
  std::vector<std::unique_ptr<Scheduler>> schedulers;  // slot schedulers
  std::filesystem::path artifact_dir;                  // slot artifact_dir
  std::string run_name;  // the Trainer, from its constructor on; see TrainerOptions::run_name
  uint64_t seed = 0;     // slot reproducibility
  Timestamp timestamp;   // the loop; `update` is the global step

  GroupPosition position;                // training stage: the current batch's
  std::optional<double> share_of_group;  // training stage: if its group's batches differ
  Timestamp previous;                    // training stage: before the current update
  Timestamp earlier;                     // training stage: before the previous update
  Timestamp next;                        // training stage: after the current batch, without seconds
  std::optional<int64_t> due_validation;  // loops: the ended stage that is not validated yet
  bool has_trained = false;               // fit: the model may be newer than any checkpoint
  const RunPlan* plan = nullptr;          // slot run_schedule; null outside of a fit
  DataExecutor* executor = nullptr;       // borrowed from the running stage; null outside
  bool is_training = false;               // the running stage trains
  const DataLoader* loader = nullptr;     // the active one, borrowed from the running stage
  std::string loader_label;  // "train", or a validation's label, the scope of its metrics
  Timestamp pass;            // batches, samples and tokens of the running validation or prediction
  Batch* batch = nullptr;    // the running stage's; in a forward pass what the model and loss see
  Outputs* outputs = nullptr;  // of the forward pass, from on_after_network to on_after_forward
  std::optional<std::filesystem::path>
      last_checkpoint;       // slot checkpoint: the newest saved or loaded
  bool has_weights = false;  // slot checkpoint: a file supplied model entries
  SaveStats saves;           // slot checkpoint: of this process
  Metrics last_metrics;      // the newest value of each metric that was logged

  int64_t global_step() const { return timestamp.update; }

  /// Whether this process writes files, logs and progress: rank 0 alone does.
  bool writes() const { return communicator->rank() == 0; }

  /// The optimizer with that name; "" for the only one.
  /// \throws UsageError  when there is none, or when "" is ambiguous
  Optimizer& optimizer_named(std::string_view name) const;

  /// The optimizer that the scheduler drives. \throws UsageError  as above
  Optimizer& optimizer_of(const Scheduler& scheduler) const {
    return optimizer_named(scheduler.target().optimizer);
  }

  /// True when `interval` falls due between `before`, which is in the current update of a fit, and
  /// `after`. An update's duration is unknown when it begins, so an interval of seconds falls due
  /// by the clock of the previous update.
  bool falls_due(const Time& interval, const Timestamp& before, const Timestamp& after) const;
};

}  // namespace rondo
