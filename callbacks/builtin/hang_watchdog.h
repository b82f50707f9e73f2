#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "callbacks/callback.h"
#include "callbacks/not_in_dry_runs.h"
#include "core/log.h"

namespace rondo {

/// Warns when no batch of a fit has finished for a while, which a thread watches, and tells an
/// alert when one finishes after all. `then = "abort"` ends the process instead, so that
/// `fit --max-restarts` starts it again.
class HangWatchdog final : public Callback, public NotInDryRuns {
 public:
  struct Options {
    double timeout_s = 600.0;   ///< > 0
    std::string then = "tell";  ///< or "abort"
  };

  /// \throws UsageError  for options out of range
  explicit HangWatchdog(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(HangWatchdog(options)); }

  ~HangWatchdog() override;

  void on_enter_fit(
      Trainer& trainer, Cleanup& cleanup, const DataLoader&, const Loaders&, Loop&) override;
  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t batch_idx) override;
  void on_validate_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t batch_idx) override;

 private:
  using Clock = std::chrono::steady_clock;

  void batch_ended(Trainer& trainer);
  void watch(const TextLog& log);
  void stop();

  Options options_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  Clock::time_point newest_;
  bool is_watching_ = false;
  bool has_warned_ = false;
  std::thread thread_;
};

}  // namespace rondo
