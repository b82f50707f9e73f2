#pragma once

#include <algorithm>

#include "optim/schedules/schedule_table.h"

namespace rondo {

constexpr const char* kInitialRate = "the first value";  ///< what many of them begin with

/// A schedule that is one formula. `Formula` is a struct of its options, the last of which is
/// `SchedulerTarget target`, with
///     double value(double t) const   its value where `t` is done, at most `length()`
///     double length() const          where its value stays; kEndless
///     static const ScheduleTable<Formula>& table()
/// Durations are amounts of one unit there: see Duration.
template <class Formula>
class FormulaScheduler : public Scheduler {
 public:
  using Options = Formula;

  /// \throws UsageError  for an option that is out of its range
  explicit FormulaScheduler(const Options& options) : Scheduler(options.target), formula_(options) {
    table().check(options);
  }

  static const ScheduleTable<Formula>& table() { return Formula::table(); }

  /// What the constructor checks, for a config.
  static void check(const Options& options) { table().check(options); }

  void count_durations(DurationCounter& counter) override { table().count(formula_, counter); }

  double value(double done) const override {
    return formula_.value(std::min(done, formula_.length()));
  }

  double length() const override { return formula_.length(); }

 private:
  Formula formula_;
};

}  // namespace rondo
