#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "core/log.h"
#include "core/metric_values.h"
#include "pymarlin/module_interface.h"
#include "pymarlin/stats.h"
#include "trainer/pymarlin_arguments.h"

namespace rondo {

class Trainer;
struct TrainerOptions;

}  // namespace rondo

namespace rondo::pymarlin {

/// Trains a ModuleInterface with rondo's trainer: recorded steps, exact resumes. A run resumes from
/// the newest checkpoint in `checkpointer_args.save_dir`, else from that of `load_dir`, which the
/// constructor loads.
class Trainer {
 public:
  /// \param change  edits the options of rondo's trainer, such as the seed; null: none
  /// \throws UsageError  naming the argument that is out of range
  /// \throws CheckpointError, IoError  when a checkpoint cannot be read
  Trainer(std::shared_ptr<ModuleInterface> module,
          TrainerArguments arguments,
          const std::function<void(TrainerOptions&)>& change = {},
          TextLog log = TextLog());
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer();

  /// Trains until the run is complete, from the newest checkpoint or what `update_state` gave.
  void train();

  /// Evaluates every loader of `get_val_dataloaders` with the current model. Warns when nobody
  /// trained it.
  void validate();

  int64_t train_step_batch_size() const;
  int64_t gradient_accumulation() const;
  int64_t estimated_global_steps_per_epoch() const;
  int64_t global_steps_finished() const;
  int64_t total_steps_finished() const;

  /// Writes the model alone. \return its path: "<file_prefix>_model_<epoch>.<file_ext>", the epoch
  /// from 0
  std::filesystem::path save_model_checkpoint() const;

  /// The content of a checkpoint of the whole run, in memory: model, optimizer, schedulers,
  /// counters and random state.
  StateDict get_state();

  /// Loads what `get_state` returned; nothing of an empty state.
  /// \throws CheckpointError  for anything else, such as weights alone
  void update_state(const StateDict& state);

  Stats& stats();

  /// The underlying trainer.
  rondo::Trainer& rondo_trainer();

 private:
  struct Run;

  std::unique_ptr<Run> run_;
};

}  // namespace rondo::pymarlin
