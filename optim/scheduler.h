#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/factory.h"
#include "core/state_dict.h"
#include "core/timestamp.h"
#include "optim/duration_counter.h"
#include "optim/optimizer.h"
#include "optim/schedules/duration.h"

namespace rondo {

/// The length of a schedule that never ends.
inline constexpr double kEndless = std::numeric_limits<double>::infinity();

/// The options of every scheduler.
struct SchedulerTarget {
  std::string param_group_key = "lr";              ///< the number that it drives
  std::vector<std::string> param_group_tags = {};  ///< the groups that it drives; none: all
  bool relative = false;       ///< its values are factors of each group's own number
  std::string optimizer = "";  ///< the name of the optimizer that it drives; "": the only one
  Duration warmup = 0;         ///< linear, from 0 to the schedule; see Scheduler::at
  bool scale_warmup = false;   ///< whether `loop.scale_schedule_ratio` stretches the warm-up too
};

/// A metric that a schedule follows.
struct FollowedMetric {
  std::string name;       ///< as it is logged, such as "val/loss"
  std::string direction;  ///< which values are better: "min", "max" or "auto", as the metric says
  std::string when;       ///< after each "validation" or "epoch", or "update" that is a log step
};

/// A number as a function of the run's progress: a resumed run needs no scheduler state, unless the
/// schedule follows a metric. It counts in the unit of its durations: updates, samples, tokens or
/// seconds. Fractions are of the run, in the unit of its length. Epochs count as updates, or as
/// whole passes if the updates of a pass are unknown. Seconds are known only up to the previous
/// batch, so no two runs see the same values.
class Scheduler {
 public:
  using Component = Scheduler;
  using Options = NoOptions;

  explicit Scheduler(SchedulerTarget target) : target_(std::move(target)) {}

  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  virtual ~Scheduler() = default;

  /// Reads the groups' initial numbers, which the values multiply if `relative` is set.
  void attach(const Optimizer& optimizer);

  /// Converts the durations for a run of that length; called before `at`.
  /// \param ratio  see DurationCounter
  /// \throws UsageError  when a duration cannot be counted, two have different units, or the
  ///                     warm-up is as long as the schedule
  void resolve(const RunLength& run, double ratio = 1.0);

  /// The same for a part of another schedule, which shares the counter.
  void count(DurationCounter& counter);

  /// Counts each duration except the warm-up, including those of parts, and keeps the counts.
  virtual void count_durations(DurationCounter& counter) = 0;

  /// The number, without warm-up, for the update that starts when `done` of `unit()` are done.
  virtual double value(double done) const = 0;

  /// The amount of `unit()` after which the value stays constant, or kEndless. A sequence adds
  /// these up.
  virtual double length() const = 0;

  /// `value` with the warm-up: linear from 0, then the schedule. A schedule with an end runs
  /// between the warm-up and its end; an endless one counts from the beginning of the run.
  /// Source: Composer's schedulers with warm-up.
  double at(double done) const;

  /// The unit of `value` and `length`, once resolved; a part of a sequence uses the sequence's.
  TimeUnit unit() const { return unit_; }

  const SchedulerTarget& target() const { return target_; }

  /// True when it drives `group`.
  bool drives(const ParamGroup& group) const;

  /// The factor of `at` for the group of this index.
  double scale_of(size_t group) const { return initial_.empty() ? 1.0 : initial_.at(group); }

  /// Writes the number for the update that begins at `now` into the groups that it drives.
  /// \capture host only
  void write(const Timestamp& now, Optimizer& optimizer) const;

  /// \name Schedules that follow a metric; the values seen are their state
  /// @{

  /// Null for schedules that depend on progress only.
  virtual const FollowedMetric* followed() const { return nullptr; }

  /// Receives the next value of that metric. \param value  negated where needed, so that lower is
  /// better
  virtual void observe(double /*value*/) {}

  virtual StateDict save_state() const { return {}; }

  /// Loads what `save_state` returned; an empty state resets it. Changes nothing when it throws.
  virtual void load_state(const StateDict&) {}

  /// @}

 private:
  SchedulerTarget target_;
  TimeUnit unit_ = TimeUnit::Update;
  std::vector<double> initial_;  // a group each; none: not relative
};

/// Checks the schedulers that drive an optimizer against each other and against it.
/// \throws UsageError  naming the schedulers: when two drive the same number of the same group,
///     when the optimizer has no such number, or when a tag belongs to no group
void check_schedulers(const std::vector<std::unique_ptr<Scheduler>>& schedulers,
                      const Optimizer& optimizer);

}  // namespace rondo
