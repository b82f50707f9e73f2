#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>

#include "callbacks/callback.h"

namespace rondo {

/// Logs how fast training is over the last batches, and the time spent so far:
/// `throughput/batches_per_sec`, `…/samples_per_sec`, `…/tokens_per_sec` (where there are tokens)
/// from the first full window on, `time/train`, `time/val` and `time/total` always. Time of
/// training is that of its batches: see Timestamp. Source: Composer's SpeedMonitor.
class SpeedMonitor final : public Callback {
 public:
  struct Options {
    int64_t window = 100;             ///< batches, >= 1
    std::string time_unit = "hours";  ///< of `time/…`: "seconds", "minutes", "hours" or "days"
  };

  /// \throws UsageError  for options out of range
  explicit SpeedMonitor(const Options& options);

  void on_fit_start(Trainer&, const DataLoader&, const Loaders&, Loop&) override;
  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t batch_idx) override;
  void on_validate_start(Trainer&, Model&, const DataLoader&, Loop&) override;
  void on_validate_end(Trainer&, Model&, Loop&) override;
  StateDict save_state() const override;
  void load_state(const StateDict& state) override;

 private:
  struct Point {
    int64_t batches;
    int64_t samples;
    int64_t tokens;
    double seconds;
  };

  size_t window_;
  double unit_seconds_;
  std::deque<Point> points_;  // of the last window, and the one before it
  double validation_seconds_ = 0.0;
  std::chrono::steady_clock::time_point validation_start_;
};

}  // namespace rondo
