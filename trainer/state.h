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

/// What a run consists of and what changes while it goes. Each field is filled by the core callback
/// named beside it; everybody else reads.
struct State {
  std::shared_ptr<Communicator> communicator;          // the Trainer: its ranks, never null
  std::unique_ptr<Backend> backend;                    // slot backend
  std::unique_ptr<Model> model;                        // slot model
  std::vector<std::unique_ptr<Optimizer>> optimizers;  // slot optimizer; none: evaluation only
  Optimizer* optimizer = nullptr;  // the first of them, which is mostly the only one
  std::vector<std::unique_ptr<Scheduler>> schedulers;  // slot schedulers
  std::filesystem::path artifact_dir;                  // slot artifact_dir
  std::string run_name;  // the Trainer, from its constructor on; see TrainerOptions::run_name
  uint64_t seed = 0;     // slot reproducibility
  Timestamp timestamp;   // the loop; `update` is the global step

  GroupPosition phase;                    // of the current batch: the training stage
  std::optional<double> share_of_group;   // that it has, where its group's batches differ: likewise
  Timestamp previous;                     // before the current update: the training stage
  Timestamp earlier;                      // before the update before it: likewise
  Timestamp next;                         // after the current batch, but for its seconds: likewise
  std::optional<int64_t> due_validation;  // the stage that has ended unvalidated: the loops
  bool has_trained = false;               // a fit: the model may be newer than any checkpoint
  const RunPlan* plan = nullptr;          // slot run_schedule; null outside of a fit
  DataExecutor* executor = nullptr;       // borrowed from the running stage; null outside
  bool is_training = false;               // the running stage trains
  const DataLoader* loader = nullptr;     // the active one, borrowed from the running stage
  std::string loader_label;  // "train", or its label; of a validation, the scope of its metrics
  Timestamp pass;            // batches, samples and tokens of the running validation or prediction
  Batch* batch = nullptr;    // the running stage's; in a forward pass what the model and loss see
  Outputs* outputs = nullptr;  // of the forward pass, from on_after_network to on_after_forward
  std::optional<std::filesystem::path>
      last_checkpoint;       // slot checkpoint: the newest saved or loaded
  bool has_weights = false;  // slot checkpoint: a file gave entries of the model
  SaveStats saves;           // slot checkpoint: of this process
  Metrics last_metrics;      // the newest value of each metric that was logged

  int64_t global_step() const { return timestamp.update; }

  /// Whether this process writes files, logs and progress: rank 0 alone does.
  bool writes() const { return communicator->rank() == 0; }

  /// The optimizer of that name; "" for the only one.
  /// \throws UsageError  when there is none, or when "" could mean several
  Optimizer& optimizer_named(std::string_view name) const;

  /// The optimizer that the scheduler drives. \throws UsageError  as above
  Optimizer& optimizer_of(const Scheduler& scheduler) const {
    return optimizer_named(scheduler.target().optimizer);
  }

  /// True when `interval` falls due from `before`, which is in the current update of a fit, to
  /// `after`. What an update will take is not known when it begins, so an interval of seconds falls
  /// due by the update before it.
  bool falls_due(const Time& interval, const Timestamp& before, const Timestamp& after) const;
};

}  // namespace rondo
