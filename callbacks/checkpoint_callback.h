#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "callbacks/callback.h"
#include "callbacks/checkpoint_options.h"
#include "core/file_system.h"

namespace rondo {

class CheckpointIndex;
class CheckpointName;

/// Saves and loads runs; fills slot `checkpoint`, the last to be called, so that it sees what all
/// others did. Every file is enough to go on exactly where it was saved.
class CheckpointCallback : public CoreCallback {
 public:
  CheckpointCallback();
  ~CheckpointCallback() override;

  /// \throws UsageError  for options that are out of range, before anything is written
  void pre_setup(Trainer& trainer) override;
  void on_enter_fit(Trainer& trainer, Cleanup&, const DataLoader&, const Loaders&, Loop&) override;
  void on_train_start(
      Trainer& trainer, Model&, const DataLoader&, Loop&, int64_t loop_idx) override;

  /// Queues a save when one is due: it runs after the step's other closures.
  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t batch_idx) override;

  /// Gathers everybody's state, writes it and puts the file into the index.
  std::filesystem::path save(Trainer& trainer);

  /// Finds the file, reads it and gives everybody their state; nothing when there is none.
  void load(Trainer& trainer, const LoadFrom& from);

  /// Deletes a checkpoint and forgets it; harmless when it is gone already.
  void remove(const std::filesystem::path& path);

  /// Every indexed checkpoint, by step.
  Paths indexed() const;

 private:
  StateDict gather(Trainer& trainer);
  void distribute(Trainer& trainer, StateDict& state);
  void check_version(Trainer& trainer, const StateDict& state) const;

  CheckpointOptions options_;
  std::shared_ptr<FileSystem> files_;  // stateless and shared with whoever writes
  std::unique_ptr<CheckpointName> name_;
  std::unique_ptr<CheckpointIndex> index_;
  bool saved_initial_ = false;
};

}  // namespace rondo
