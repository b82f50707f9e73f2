#pragma once

#include <cstdint>

#include "callbacks/callback.h"
#include "callbacks/not_in_dry_runs.h"

namespace rondo {

/// Passes over training data after a checkpoint, such as samples that made a loss infinite. It acts
/// when a fit continues from the checkpoint of one update, so that later starts pass over nothing.
/// Source: SkipSamples of Cerebras' ModelZoo trainer.
class SkipSamples final : public Callback, public NotInDryRuns {
 public:
  struct Options {
    int64_t samples = 0;  ///< >= 1
    int64_t after = -1;   ///< the update of the checkpoint, >= 0
  };

  /// \throws UsageError  for options out of range
  explicit SkipSamples(const Options& options);

  /// \throws DataError  when fewer samples are left of the epoch
  void preprocess_checkpoint(Trainer& trainer, StateDict& state) override;

 private:
  Options options_;
};

}  // namespace rondo
