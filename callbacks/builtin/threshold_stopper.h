#pragma once

#include <optional>
#include <string>

#include "callbacks/builtin/metric_stopper.h"

namespace rondo {

/// Ends a run whose metric is better than a threshold.
/// Source: Composer's ThresholdStopper.
class ThresholdStopper final : public MetricStopper {
 public:
  struct Options {
    std::string metric = {};  ///< see MetricStopper::Watch, also for the next two
    std::string direction = "auto";
    std::string when = "validation";
    double threshold = 0.0;
  };

  /// \throws UsageError  for options out of range
  explicit ThresholdStopper(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(ThresholdStopper(options)); }

  StateDict save_state() const override;
  void load_state(const StateDict& state) override;

 protected:
  void look(const Timestamp&, double value) override { newest_ = value; }

  bool is_over() const override { return newest_ && is_better(*newest_, threshold_); }

 private:
  double threshold_;
  std::optional<double> newest_;
};

}  // namespace rondo
