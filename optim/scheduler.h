#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/factory.h"
#include "core/time.h"
#include "optim/optimizer.h"

namespace rondo {

/// The length of a schedule that is never over.
inline constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();

/// What every scheduler takes.
struct SchedulerTarget {
  std::string param_group_key = "lr";              ///< the number that it drives
  std::vector<std::string> param_group_tags = {};  ///< the groups that it drives; none: all
};

/// A number as a pure function of the count of updates done. It keeps no state, so a resumed run
/// needs none.
class Scheduler {
 public:
  using Component = Scheduler;
  using Options = NoOptions;

  explicit Scheduler(SchedulerTarget target) : target_(std::move(target)) {}

  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  virtual ~Scheduler() = default;

  /// Turns durations into updates; called when the length of the run is known, before `value`.
  /// \throws UsageError  when a duration cannot be converted
  virtual void resolve(const RunLength& run) = 0;

  /// The number for the update that follows `updates` done ones.
  virtual double value(int64_t updates) const = 0;

  /// Updates after which the schedule is over and its value stays, or kEndless; what a sequence
  /// adds up.
  virtual int64_t length() const = 0;

  const SchedulerTarget& target() const { return target_; }

  /// True when it drives `group`.
  bool drives(const ParamGroup& group) const;

  /// Writes the value for the update after `updates` into the groups that it drives.
  /// \capture host only
  void write(int64_t updates, Optimizer& optimizer) const;

 private:
  SchedulerTarget target_;
};

/// Checks what no scheduler can see alone.
/// \throws UsageError  naming the schedulers: when two drive the same number of the same group,
/// when
///     the optimizer has no such number, or when a tag belongs to no group
void check_schedulers(const std::vector<std::unique_ptr<Scheduler>>& schedulers,
                      const Optimizer& optimizer);

}  // namespace rondo
