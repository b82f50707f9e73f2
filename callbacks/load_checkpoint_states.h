#pragma once

#include <string>
#include <vector>

#include "callbacks/callback.h"

namespace rondo {

/// Loads chosen sections of a checkpoint only: with {"model"} training begins at update 0 with a
/// fresh optimizer. A checkpoint of a run that has this callback itself is loaded whole, so that
/// the run can be resumed. `checkpoint.load` does the same for one file, with globs. Source:
/// LoadCheckpointStates of Cerebras' ModelZoo.
class LoadCheckpointStates final : public Callback {
 public:
  struct Options {
    std::vector<std::string> states;  ///< sections; at least one
  };

  explicit LoadCheckpointStates(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(LoadCheckpointStates(options)); }

  /// \throws CheckpointError  naming a section that the file does not have, and those it has
  void preprocess_checkpoint(Trainer& trainer, StateDict& state) override;

  /// Marks the run's own checkpoints.
  StateDict save_state() const override { return {{"states", "all"}}; }

 private:
  Options options_;
};

}  // namespace rondo
