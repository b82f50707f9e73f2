#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "callbacks/builtin/remaining_time.h"
#include "callbacks/callback.h"

namespace rondo {

/// Logs `time/remaining_estimate`: how long the run will still take, its validations included.
/// Source: Composer's RuntimeEstimator.
class RuntimeEstimator final : public Callback {
 public:
  struct Options {
    int64_t skip_batches = 1;         ///< of a fit, which are slower than the others; >= 0
    std::string time_unit = "hours";  ///< "seconds", "minutes", "hours" or "days"
  };

  /// \throws UsageError  for options out of range
  explicit RuntimeEstimator(const Options& options);

  void on_fit_start(Trainer&, const DataLoader&, const Loaders&, Loop&) override;
  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t batch_idx) override;
  void on_validate_start(Trainer& trainer, Model&, const DataLoader& loader, Loop&) override;
  void on_validate_end(Trainer&, Model&, Loop&) override;

 private:
  int64_t skip_batches_;
  double unit_seconds_;
  int64_t batches_ = 0;  // of this fit
  RemainingTime remaining_;
  std::string label_;  // of the loader that is validated
  std::chrono::steady_clock::time_point validation_start_;
};

}  // namespace rondo
