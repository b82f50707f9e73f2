#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <optional>

#include "callbacks/callback.h"
#include "callbacks/not_in_dry_runs.h"
#include "tracing/program/step_work.h"

namespace rondo {

/// Logs at log steps how much of the machine training uses: `throughput/flops_per_sec` and its
/// share `throughput/flops_share` of the fastest product that this machine was measured to make,
/// `throughput/bytes_per_sec` that operators read and write, and its share
/// `throughput/bandwidth_share` of the fastest copy. Operations are counted from the operators of
/// recorded steps: see `flops_of`. Steps that run as written do not count.
/// Source: FlopUtilization of Cerebras' ModelZoo trainer, SpeedMonitor of Composer.
class FlopUtilization final : public Callback, public NotInDryRuns {
 public:
  void on_train_start(Trainer&, Model&, const DataLoader&, Loop&, int64_t) override;
  void on_train_batch_end(Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) override;
  void on_fit_end(Trainer& trainer, Loop&) override;

 private:
  struct Point {
    WorkDone work;
    double seconds = 0.0;
  };

  void log_since(const Point& before, const Point& now, Trainer& trainer);
  void measure(const Trainer& trainer, const WorkDone& work);

  std::optional<Point> last_;               // that was logged, in this stage
  std::map<c10::ScalarType, double> peak_;  // flops per second
  std::optional<double> peak_bytes_;        // per second
  bool has_logged_ = false;
};

}  // namespace rondo
