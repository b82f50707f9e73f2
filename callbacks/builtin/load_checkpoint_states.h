#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "callbacks/callback.h"

namespace rondo {

/// Loads chosen sections of a checkpoint only: with {"model"} training begins at update 0 with a
/// fresh optimizer. A checkpoint that the run's own index lists is loaded whole, so that the run
/// can be resumed. `checkpoint.load` does the same for one file, with globs. Source:
/// LoadCheckpointStates of Cerebras' ModelZoo.
class LoadCheckpointStates final : public Callback {
 public:
  struct Options {
    std::vector<std::string> states;  ///< sections; at least one
  };

  explicit LoadCheckpointStates(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(LoadCheckpointStates(options)); }

  void on_before_load_checkpoint(Trainer& trainer, const std::filesystem::path* path) override;

  /// \throws CheckpointError  naming a section that the file does not have, and those it has
  void preprocess_checkpoint(Trainer& trainer, StateDict& state) override;

 private:
  Options options_;
  bool is_own_ = false;  // the checkpoint that is being loaded
};

}  // namespace rondo
