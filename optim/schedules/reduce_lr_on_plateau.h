#pragma once

#include <optional>
#include <string>
#include <vector>

#include "optim/schedules/schedule_table.h"

namespace rondo {

/// `max(initial * factor^n, min_lr)`, where n plateaus of a metric were found. With test
/// "threshold" a plateau is more than `patience` values in a row that are no better than the best
/// by `threshold`, a share of it ("rel") or an amount ("abs"); `cooldown` values after a reduction
/// count as good. With test "slope" it is `patience` values of which a statistical test sees no
/// fall. What was seen is state, which checkpoints hold.
/// Source: ReduceLROnPlateau of PyTorch; "slope": plateau.h.
class ReduceLROnPlateau final : public Scheduler {
 public:
  struct Options {
    double initial_learning_rate = 1e-3;
    std::string metric = "";         ///< as it is logged, such as "val/loss"
    std::string direction = "auto";  ///< see FollowedMetric
    std::string when = "validation";
    double factor = 0.1;
    int64_t patience = 10;  ///< values
    std::string test = "threshold";
    double threshold = 1e-4;
    std::string threshold_mode = "rel";
    int64_t cooldown = 0;  ///< values
    double min_lr = 0.0;
    SchedulerTarget target = {};
  };

  /// \throws UsageError  for an option that is out of its range
  explicit ReduceLROnPlateau(const Options& options);

  static const ScheduleTable<Options>& table();

  static void check(const Options& options) { table().check(options); }

  void count_durations(DurationCounter&) override {}

  double value(double done) const override;

  double length() const override { return kEndless; }

  const FollowedMetric* followed() const override { return &followed_; }

  void observe(double value) override;
  StateDict save_state() const override;
  void load_state(const StateDict& state) override;

 private:
  bool sees_plateau(double value);
  bool is_better(double value) const;

  Options options_;
  FollowedMetric followed_;
  int64_t reductions_ = 0;
  int64_t bad_ = 0;       // values in a row that were no better
  int64_t cooldown_ = 0;  // values that count as good yet
  std::optional<double> best_;
  std::vector<double> values_;  // since the last reduction, `patience` at most
};

}  // namespace rondo
