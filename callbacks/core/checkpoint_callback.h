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

/// Saves and loads runs; fills slot `checkpoint`, the last to be called, so that it sees what all
/// others did. Every file is enough to go on exactly where it was saved.
class CheckpointCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "checkpoint";

  struct Options {
    std::shared_ptr<FileSystem> files = {};  ///< where saves go; null: the machine's own
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

  /// Queues a save when one is due: it runs after the step's other closures. Errors of the save
  /// before it that was written in the background come up here.
  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t batch_idx) override;

  /// Saves the last update when it is not saved yet: of a run that was stopped in a validation,
  /// whose end showed only when the data ended, or whose save failed. Waits for the last save.
  void on_fit_end(Trainer& trainer, Loop&) override;

  /// Writes everybody's state into a file of another name, or an address, that no index lists and
  /// no callback hears of. \param file  where; a relative path is from the directory of the
  /// checkpoints \return where it is
  std::filesystem::path save_as(Trainer& trainer, const std::filesystem::path& file);

  /// Gathers everybody's state, writes it and puts the file into the index, before it returns.
  /// \throws NonFiniteLossError  when it is not sound (`CheckpointOptions::require_finite`)
  std::filesystem::path save(Trainer& trainer);

  /// Finds the file, reads it and gives everybody their state; nothing when there is none. When it
  /// throws, everybody's state is what it was. Of the run's own checkpoints the newest that can be
  /// read is loaded, with a warning for each that cannot.
  void load(Trainer& trainer, const LoadFrom& from);

  /// Gives everybody the state that was read from `path`. When it throws, everybody's state is what
  /// it was.
  void load(Trainer& trainer, const std::filesystem::path& path, StateDict state);

  /// Everybody's state, as it is saved. Tensors share memory with the run.
  StateDict gather(Trainer& trainer);

  /// Deletes a checkpoint and forgets it; harmless when it is gone already. Of a run with
  /// `CheckpointOptions::remote` once what was published before is there.
  void remove(const std::filesystem::path& path);

  /// Every indexed checkpoint that is there, by step.
  Paths indexed() const;

  /// True for a checkpoint of this run, whatever its name.
  bool is_listed(const std::filesystem::path& path) const;

  /// The checkpoint of its own that the run went on from; nothing when it began afresh, or with
  /// another run's.
  std::optional<std::filesystem::path> resumed_from(const Trainer& trainer) const;

  /// The directory of this run's checkpoints.
  const std::filesystem::path& root() const { return options_.checkpoint_root; }

  /// Does work that belongs to a save, such as writing a file beside it. What becomes of the run
  /// when that fails with an IoError or a CheckpointError, `on_error` decides.
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

  std::shared_ptr<FileSystem> files_;  // shared with whoever writes
  CheckpointOptions options_;
  std::unique_ptr<CheckpointName> name_;
  std::unique_ptr<CheckpointIndex> index_;
  OpenRemoteStore open_remote_;
  SoundState sound_;
  bool is_in_fit_ = false;
  bool writes_ = true;                          // of several ranks, rank 0 alone does
  int64_t saving_update_ = 0;                   // of the save in progress
  std::optional<int64_t> saved_update_;         // of the newest save that is done, or load
  std::unique_ptr<CheckpointUploads> uploads_;  // null: checkpoints stay here
  std::unique_ptr<BackgroundSave> background_;  // last: it ends before what it uses
};

}  // namespace rondo
