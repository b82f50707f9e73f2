#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "callbacks/callback.h"
#include "callbacks/core/checkpoint_options.h"
#include "callbacks/core/sound_state.h"
#include "core/file_system.h"
#include "remote/remote_store.h"

namespace rondo {

class BackgroundSave;
class CheckpointIndex;
class CheckpointName;
class CheckpointUploads;

/// Saves and loads runs; fills slot `checkpoint`. It is called last, so that it sees what all
/// others did. A run resumes exactly from any single file.
class CheckpointCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "checkpoint";

  struct Options {
    std::shared_ptr<FileSystem> files = {};  ///< where saves go; null: the local files
    OpenRemoteStore open_remote = {};        ///< where copies go; null: `open_remote_store`
  };

  CheckpointCallback();
  explicit CheckpointCallback(const Options& options);
  ~CheckpointCallback() override;

  /// \throws UsageError  for options that are out of range
  static void check(const CheckpointOptions& options);

  /// \throws UsageError  as `check` does, before anything is written
  void pre_setup(Trainer& trainer) override;
  void post_setup(Trainer& trainer) override;
  void on_enter_fit(
      Trainer& trainer, Cleanup& cleanup, const DataLoader&, const Loaders&, Loop&) override;
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  void on_train_start(
      Trainer& trainer, Model&, const DataLoader&, Loop&, int64_t loop_idx) override;

  /// Queues a save when one is due: it runs after the step's other closures. Reports the error of
  /// the previous background save.
  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t batch_idx) override;

  /// Saves the last update if it is not saved yet: when a validation was stopped, when the data
  /// ended the run, or when a save failed. Waits for the last save.
  void on_fit_end(Trainer& trainer, Loop&) override;

  /// Writes all state into `file`, which no index lists and of which no callback is notified.
  /// \param file  a path, relative to the checkpoint directory, or an address
  /// \return its path or address
  std::filesystem::path save_as(Trainer& trainer, const std::filesystem::path& file);

  /// Gathers all state, writes it and adds the file to the index before it returns.
  /// \throws NonFiniteLossError  when the state is not finite (`CheckpointOptions::require_finite`)
  std::filesystem::path save(Trainer& trainer);

  /// Finds the file, reads it and distributes the state; does nothing when there is no file. An
  /// exception leaves all state unchanged. Of the run's own checkpoints it loads the newest
  /// readable one, with a warning for each unreadable one.
  void load(Trainer& trainer, const LoadFrom& from);

  /// Distributes the state that was read from `path`. An exception leaves all state unchanged.
  void load(Trainer& trainer, const std::filesystem::path& path, StateDict state);

  /// All state, as it is saved. Tensors share memory with the run.
  StateDict gather(Trainer& trainer);

  /// Deletes a checkpoint and removes it from the index; harmless when it is already gone. With
  /// `CheckpointOptions::remote`, the deletion follows once earlier uploads are complete.
  void remove(const std::filesystem::path& path);

  /// Every indexed checkpoint that exists, in order of step.
  Paths indexed() const;

  /// How this run opens stores.
  const OpenRemoteStore& open_remote() const { return open_remote_; }

  /// True for a checkpoint of this run, whatever its name.
  bool is_listed(const std::filesystem::path& path) const;

  /// The checkpoint of this run from which it resumed; nothing if it started from scratch or from
  /// another run's checkpoint.
  std::optional<std::filesystem::path> resumed_from(const Trainer& trainer) const;

  /// The directory of this run's checkpoints.
  const std::filesystem::path& root() const { return options_.checkpoint_root; }

  /// Does work that belongs to a save, such as writing a file next to it. If that fails with an
  /// IoError or a CheckpointError, `on_error` decides what happens to the run.
  void attempt(Trainer& trainer, const std::function<void()>& work);

  /// The update of the newest checkpoint that was saved or loaded; -1 before the first.
  int64_t saved_update() const { return saved_update_.value_or(-1); }

 private:
  bool saves_in_between() const { return !options_.steps.is_zero(); }

  bool saves_when_stopped() const { return saves_in_between() || options_.save_final_checkpoint; }

  void save_in_run(Trainer& trainer);
  void save_at_end(Trainer& trainer);
  void settle(Trainer& trainer, bool waits);
  void finish_save(Trainer& trainer, const std::filesystem::path& path, double seconds);
  void fail_save(Trainer& trainer, const std::exception_ptr& error);
  void publish(const std::filesystem::path& path);
  void delete_here(const std::filesystem::path& path);
  void log_uploads(Trainer& trainer);
  void finish_uploads(Trainer& trainer);
  NewName new_name(const Trainer& trainer) const;
  StateCheck check_of_state(const Trainer& trainer) const;
  bool has_initial() const;
  StateDict without_ignored(StateDict state) const;

  void load_file(Trainer& trainer, const std::filesystem::path& path, const LoadOptions* options);
  void fetch_newest(Trainer& trainer);
  void load_newest(Trainer& trainer, const Paths& best_last);
  void warn_of_branch(const Trainer& trainer, const std::filesystem::path& newest) const;
  void distribute(Trainer& trainer,
                  const std::filesystem::path& path,
                  StateDict& state,
                  const LoadOptions* options = nullptr);

  std::shared_ptr<FileSystem> files_;  // shared with the writers
  CheckpointOptions options_;
  std::unique_ptr<CheckpointName> name_;
  std::unique_ptr<CheckpointIndex> index_;
  OpenRemoteStore open_remote_;
  SoundState sound_;
  bool is_in_fit_ = false;
  bool writes_ = true;                          // with several ranks, only rank 0
  int64_t saving_update_ = 0;                   // of the save in progress
  std::optional<int64_t> saved_update_;         // of the newest finished save, or load
  std::unique_ptr<CheckpointUploads> uploads_;  // null: no uploads
  std::unique_ptr<BackgroundSave> background_;  // last: it ends before what it uses
};

}  // namespace rondo
