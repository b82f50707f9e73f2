#pragma once

#include "callbacks/callback.h"

namespace rondo {

/// Logs the memory of the process on log steps: `memory/current_resident` and
/// `memory/peak_resident`, in GB of 1e9 bytes with five digits. Where the system does not tell
/// (there is no /proc), a warning says so and nothing is logged.
/// Source: Composer's MemoryMonitor, for the memory of a CPU.
class MemoryMonitor final : public Callback {
 public:
  void setup(Trainer& trainer) override;
  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t batch_idx) override;
};

}  // namespace rondo
