#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>

#include "callbacks/callback.h"

namespace rondo {

class CheckpointCallback;

/// Keeps the newest `n` checkpoints of this run and deletes older ones, never those of earlier
/// runs. It knows them by name, so that a run can be moved, and a copy of a run leaves the files of
/// the other one alone.
class KeepNCheckpoints final : public Callback {
 public:
  struct Options {
    int64_t n = 1;  ///< checkpoints, >= 1
  };

  explicit KeepNCheckpoints(const Options& options);

  void on_after_save_checkpoint(Trainer& trainer, const std::filesystem::path& path) override;
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  StateDict save_state() const override;
  void load_state(const StateDict& state) override;
  void on_load_checkpoint(Trainer& trainer, const StateDict& checkpoint) override;

 private:
  void drop_oldest(CheckpointCallback& checkpoints);

  Options options_;
  std::deque<std::string> saved_;  // names of this run's files, oldest first
  bool is_loaded_ = false;         // `saved_` is a checkpoint's and not yet checked
};

}  // namespace rondo
