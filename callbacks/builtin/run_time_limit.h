#pragma once

#include <chrono>

#include "callbacks/callback.h"
#include "callbacks/not_in_dry_runs.h"

namespace rondo {

/// Ends a fit after so many seconds, validations included, as if this update were its last: it
/// saves, and a later start continues.
class RunTimeLimit final : public Callback, public NotInDryRuns {
 public:
  struct Options {
    double limit_s = 0.0;  ///< > 0
  };

  /// \throws UsageError  for a limit that is not above 0
  explicit RunTimeLimit(const Options& options);

  void on_fit_start(Trainer&, const DataLoader&, const Loaders&, Loop&) override;
  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t batch_idx) override;

 private:
  Options options_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace rondo
