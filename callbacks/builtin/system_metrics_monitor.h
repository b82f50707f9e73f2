#pragma once

#include <cstdint>
#include <optional>

#include "callbacks/builtin/gpu_meter.h"
#include "callbacks/callback.h"
#include "callbacks/not_in_dry_runs.h"

namespace rondo {

/// Logs on log steps how busy the machine is: `system/cpu_percent` of all cores and
/// `system/process_cpu_percent` of one core since the last log step, `system/memory_percent` and
/// `system/memory_used_gb`, `system/disk_free_gb` where the run writes, and `system/load`; of a run
/// on an NVIDIA GPU also what a `GpuMeter` reads, as `system/gpu_percent` and so on.
/// Source: Composer's SystemMetricsMonitor.
class SystemMetricsMonitor final : public Callback, public NotInDryRuns {
 public:
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t batch_idx) override;

 private:
  /// Times since the machine, or the process, started.
  struct Times {
    double busy = 0.0;
    double all = 0.0;
    double process = 0.0;  ///< seconds
    double clock = 0.0;    ///< seconds
  };

  static Times times_now();

  Times before_;
  std::optional<GpuMeter> gpu_;  // of a run on one, where it can be read
};

}  // namespace rondo
