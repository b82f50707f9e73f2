#pragma once

#include <cstdint>
#include <string>

#include "callbacks/callback.h"
#include "callbacks/not_in_dry_runs.h"

namespace rondo {

/// Writes what takes memory into `<artifact_dir>/memory_snapshot.txt` after an update: the process,
/// parameters, gradients, what optimizers keep, and the arenas of recorded steps, the largest
/// first. A fit that ends for want of memory leaves the same in `out_of_memory.txt`.
/// Source: Composer's MemorySnapshot and OOMObserver.
class MemorySnapshot final : public Callback, public NotInDryRuns {
 public:
  struct Options {
    int64_t after = 5;  ///< the update, >= 1
  };

  /// \throws UsageError  for an update below 1
  explicit MemorySnapshot(const Options& options);

  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t batch_idx) override;
  void on_fit_exception(Trainer& trainer, std::exception_ptr error) override;

 private:
  Options options_;
};

}  // namespace rondo
