#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "callbacks/builtin/metric_stopper.h"
#include "core/time.h"

namespace rondo {

/// Ends a run whose metric has stopped improving.
/// Source: Composer's EarlyStopper.
class EarlyStopper final : public MetricStopper {
 public:
  struct Options {
    std::string metric = {};  ///< see MetricStopper::Watch, also for the next two
    std::string direction = "auto";
    std::string when = "validation";
    Time patience = "1ep";   ///< ends the run when the best value is older
    double min_delta = 0.0;  ///< a value is better only by more than this, >= 0
  };

  /// \throws UsageError  for options out of range
  explicit EarlyStopper(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(EarlyStopper(options)); }

  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  StateDict save_state() const override;
  void load_state(const StateDict& state) override;

 protected:
  void look(const Timestamp& now, double value) override;

  bool is_over() const override { return age_ > patience_.count(); }

 private:
  Time patience_;
  double min_delta_;
  std::optional<double> best_;
  int64_t best_at_ = 0;                 // in the unit of the patience
  std::optional<TimeUnit> saved_unit_;  // of the patience that a loaded state was saved with
  int64_t age_ = 0;                     // of the best value when the metric was looked at last
};

}  // namespace rondo
