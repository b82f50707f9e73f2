#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "loggers/logger.h"

namespace rondo {

/// One line a log step on standard error: loss, rates and the time that remains. On a terminal the
/// line of training is rewritten in place.
class ProgressLogger final : public Logger {
 public:
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  void on_fit_end(Trainer& trainer, Loop&) override;
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
  void print(const std::string& line, bool may_be_rewritten);

  bool is_terminal_ = false;
  bool line_is_open_ = false;  // the last line may be rewritten
  std::optional<double> loss_;
  int64_t samples_ = 0;        // since the last line
  int64_t total_samples_ = 0;  // of this fit
  Clock::time_point since_;
  double train_seconds_ = 0.0;  // of this fit, without validations
};

}  // namespace rondo
