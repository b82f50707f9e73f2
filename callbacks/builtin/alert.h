#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "callbacks/builtin/internal/alert_rule.h"
#include "callbacks/callback.h"
#include "callbacks/core/metric_direction.h"
#include "callbacks/listeners.h"
#include "callbacks/not_in_dry_runs.h"

namespace rondo {

/// Tells the user, by `Trainer::alert`, when a metric is out of bounds: once, until it is back
/// within them. Warns of a metric that nothing logs, which it knows after the first validation of
/// its scope, or at the end of the fit.
class Alert final : public Callback, public HearsMetrics, public NotInDryRuns {
 public:
  struct Options {
    std::string metric = {};         ///< as it is logged, such as "val/loss"
    std::string when = {};           ///< "> 3.0", also with <, >= and <=; "not finite"; or "no
                                     ///< improvement for 5" values
    std::string level = "warn";      ///< or "error"
    std::string then = "tell";       ///< or "stop": the run ends after the update
    std::string direction = "auto";  ///< of "no improvement": see MetricDirection
  };

  /// \throws UsageError  for options out of range
  explicit Alert(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(Alert(options)); }

  void post_setup(Trainer& trainer) override;
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders& val, Loop&) override;
  void on_validate_end(Trainer& trainer, Model&, Loop&) override;
  void on_fit_end(Trainer& trainer, Loop&) override;
  void on_metrics(Trainer& trainer, const Metrics& values, int64_t update) override;
  StateDict save_state() const override;
  void load_state(const StateDict& state) override;

  std::string state_subject() const override { return options_.metric + " " + options_.when; }

 private:
  bool is_bad(double value);
  void warn_if_missing(const Trainer& trainer);

  Options options_;
  detail::AlertRule rule_;
  std::optional<MetricDirection> direction_;  // of "no improvement"
  std::optional<double> best_;
  int64_t without_improvement_ = 0;  // values
  bool is_raised_ = false;
  bool is_known_ = false;  // to be logged, or warned of
};

}  // namespace rondo
