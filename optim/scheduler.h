#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/factory.h"
#include "core/timestamp.h"
#include "optim/duration_counter.h"
#include "optim/optimizer.h"

namespace rondo {

/// The length of a schedule that is never over.
inline constexpr double kEndless = std::numeric_limits<double>::infinity();

/// What every scheduler takes.
struct SchedulerTarget {
  std::string param_group_key = "lr";              ///< the number that it drives
  std::vector<std::string> param_group_tags = {};  ///< the groups that it drives; none: all
};

/// A number as a pure function of how far the run is, so that a resumed run needs no state of it.
/// It counts what its durations are in: updates, samples, tokens or seconds. Fractions are of the
/// run, in what its length is in; epochs are updates, or whole passes where nobody knows how many
/// updates one has. In seconds, which are known up to the batch before, no two runs see the same
/// values.
class Scheduler {
 public:
  using Component = Scheduler;
  using Options = NoOptions;

  explicit Scheduler(SchedulerTarget target) : target_(std::move(target)) {}

  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  virtual ~Scheduler() = default;

  /// Counts the durations in a run of that length; called before `value`.
  /// \throws UsageError  when one cannot be counted, or two count different things
  void resolve(const RunLength& run);

  /// Has each duration counted, those of parts too, and keeps the counts.
  virtual void count_durations(DurationCounter& counter) = 0;

  /// The number for the update before which `done` of `unit()` are done.
  virtual double value(double done) const = 0;

  /// How much of `unit()` it takes until the schedule is over and its value stays, or kEndless;
  /// what a sequence adds up.
  virtual double length() const = 0;

  /// What `value` and `length` count, once resolved; a part of a sequence counts what that does.
  TimeUnit unit() const { return unit_; }

  const SchedulerTarget& target() const { return target_; }

  /// True when it drives `group`.
  bool drives(const ParamGroup& group) const;

  /// Writes the value for the update that begins at `now` into the groups that it drives.
  /// \capture host only
  void write(const Timestamp& now, Optimizer& optimizer) const;

 private:
  SchedulerTarget target_;
  TimeUnit unit_ = TimeUnit::Update;
};

/// Checks what no scheduler can see alone.
/// \throws UsageError  naming the schedulers: when two drive the same number of the same group,
/// when
///     the optimizer has no such number, or when a tag belongs to no group
void check_schedulers(const std::vector<std::unique_ptr<Scheduler>>& schedulers,
                      const Optimizer& optimizer);

}  // namespace rondo
