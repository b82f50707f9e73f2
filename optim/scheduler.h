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

/// The length of a schedule that is never over.
inline constexpr double kEndless = std::numeric_limits<double>::infinity();

/// What every scheduler takes.
struct SchedulerTarget {
  std::string param_group_key = "lr";              ///< the number that it drives
  std::vector<std::string> param_group_tags = {};  ///< the groups that it drives; none: all
  bool relative = false;       ///< its values are factors of each group's own number
  std::string optimizer = "";  ///< the name of the optimizer that it drives; "": the only one
  Duration warmup = 0;         ///< a line from 0 to the schedule; see Scheduler::at
  bool scale_warmup = false;   ///< whether `loop.scale_schedule_ratio` stretches the warm-up too
};

/// A metric that a schedule follows.
struct FollowedMetric {
  std::string name;       ///< as it is logged, such as "val/loss"
  std::string direction;  ///< which values are better: "min", "max" or "auto", as the metric says
  std::string when;       ///< after each "validation" or "epoch", or "update" that is a log step
};

/// A number as a function of how far the run is: a resumed run needs no state of it, unless it
/// follows a metric. It counts what its durations are in: updates, samples, tokens or seconds.
/// Fractions are of the run, in what its length is in; epochs are updates, or whole passes where
/// nobody knows how many updates one has. In seconds, which are known up to the batch before, no
/// two runs see the same values.
class Scheduler {
 public:
  using Component = Scheduler;
  using Options = NoOptions;

  explicit Scheduler(SchedulerTarget target) : target_(std::move(target)) {}

  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  virtual ~Scheduler() = default;

  /// Takes what the groups begin with, of which the values are factors where `relative` says so.
  void attach(const Optimizer& optimizer);

  /// Counts the durations in a run of that length; called before `at`.
  /// \param ratio  see DurationCounter
  /// \throws UsageError  when one cannot be counted, two count different things, or the warm-up is
  ///                     as long as the schedule
  void resolve(const RunLength& run, double ratio = 1.0);

  /// The same for a part of another schedule, whose durations the counter has too.
  void count(DurationCounter& counter);

  /// Has each duration counted but the warm-up, those of parts too, and keeps the counts.
  virtual void count_durations(DurationCounter& counter) = 0;

  /// The number for the update before which `done` of `unit()` are done, without warm-up.
  virtual double value(double done) const = 0;

  /// How much of `unit()` it takes until the schedule is over and its value stays, or kEndless;
  /// what a sequence adds up.
  virtual double length() const = 0;

  /// `value` with the warm-up: a line from 0, then the schedule. A schedule with an end takes place
  /// between the warm-up and its end; one without an end counts from the beginning of the run.
  /// Source: Composer's schedulers with warm-up.
  double at(double done) const;

  /// What `value` and `length` count, once resolved; a part of a sequence counts what that does.
  TimeUnit unit() const { return unit_; }

  const SchedulerTarget& target() const { return target_; }

  /// True when it drives `group`.
  bool drives(const ParamGroup& group) const;

  /// By which `at` is multiplied for the group of this index.
  double scale_of(size_t group) const { return initial_.empty() ? 1.0 : initial_.at(group); }

  /// Writes the number for the update that begins at `now` into the groups that it drives.
  /// \capture host only
  void write(const Timestamp& now, Optimizer& optimizer) const;

  /// \name Schedules that follow a metric; what they have seen is state
  /// @{

  /// Null for functions of how far the run is.
  virtual const FollowedMetric* followed() const { return nullptr; }

  /// Takes the next value of that metric. \param value  lower is better, whatever the metric says
  virtual void observe(double /*value*/) {}

  virtual StateDict save_state() const { return {}; }

  /// Takes what `save_state` gave; begins afresh with an empty state. Changes nothing when it
  /// throws.
  virtual void load_state(const StateDict&) {}

  /// @}

 private:
  SchedulerTarget target_;
  TimeUnit unit_ = TimeUnit::Update;
  std::vector<double> initial_;  // a group each; none: not relative
};

/// Checks what no scheduler can see alone, of those that drive the optimizer.
/// \throws UsageError  naming the schedulers: when two drive the same number of the same group,
///     when the optimizer has no such number, or when a tag belongs to no group
void check_schedulers(const std::vector<std::unique_ptr<Scheduler>>& schedulers,
                      const Optimizer& optimizer);

}  // namespace rondo
