#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "loggers/live_progress.h"
#include "loggers/logger.h"

namespace rondo {

/// Shows on standard error how a run goes: on a terminal, while it trains, a block of lines that is
/// drawn in place (`live_progress.h`); elsewhere a line a log step, with loss, rates and the time
/// that remains. Validations leave a line with their results.
class ProgressLogger final : public FilteredLogger {
 public:
  struct Options {
    std::vector<std::string> metrics = {};  ///< globs of what the block shows; none: up to four
                                            ///< metrics that say which values are better
    std::optional<Time> log_steps = {};     ///< see LogFilter, also for the next
    std::vector<std::string> exclude = {};
  };

  explicit ProgressLogger(const Options& options)
      : FilteredLogger({options.log_steps, options.exclude}), metrics_(options.metrics) {}

  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  void on_fit_end(Trainer& trainer, Loop&) override;
  void on_fit_exception(Trainer&, std::exception_ptr) override;
  void on_train_start(Trainer& trainer, Model&, const DataLoader&, Loop&, int64_t) override;
  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch& batch, int64_t) override;
  void on_validate_start(Trainer& trainer, Model&, const DataLoader&, Loop&) override;
  void on_validate_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch& batch, int64_t batch_idx) override;
  void on_validate_end(Trainer& trainer, Model&, Loop&) override;
  void log(const Metrics& values, int64_t update) override;

 private:
  using Clock = std::chrono::steady_clock;

  void print_train(Trainer& trainer);

  std::vector<std::string> metrics_;    // globs
  std::unique_ptr<LiveProgress> live_;  // null: lines instead
  std::optional<double> loss_;
  int64_t samples_ = 0;        // since the last line
  int64_t total_samples_ = 0;  // of this fit
  int64_t run_samples_ = 0;    // of the whole run so far
  Clock::time_point since_;
  double train_seconds_ = 0.0;  // of this fit, without validations
};

}  // namespace rondo
