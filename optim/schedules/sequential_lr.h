#pragma once

#include <memory>
#include <vector>

#include "optim/scheduler.h"

namespace rondo {

/// Schedules one after another. Each counts from its own beginning; the last one stays in charge. A
/// schedule takes over at the sum of the lengths of those before it, its milestone: there the value
/// is already its own. After one without an end, the milestone is what says where it ends. All
/// durations count one unit.
class SequentialLR final : public Scheduler {
 public:
  struct Options {
    std::vector<Factory<Scheduler>> schedulers = {};  ///< at least one; they take over the target
    std::vector<Duration> milestones = {};  ///< none, or what the lengths add up to, where they end
    SchedulerTarget target = {};
  };

  /// \throws UsageError  without schedulers, or when one has a target of its own
  explicit SequentialLR(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(SequentialLR(options)); }

  /// \throws UsageError  when a schedule before the last never ends and has no milestone, or
  ///                     milestones were given that differ from the sums of lengths
  void count_durations(DurationCounter& counter) override;
  double value(double done) const override;
  double length() const override;

 private:
  double length_of(size_t part) const;
  void check_milestones(const DurationCounter& counter) const;

  std::vector<std::unique_ptr<Scheduler>> schedulers_;
  std::vector<Duration> given_milestones_;
  std::vector<double> starts_;  // one a scheduler; the first is 0
};

}  // namespace rondo
