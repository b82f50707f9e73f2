#pragma once

#include <memory>
#include <string>
#include <vector>

#include "optim/scheduler.h"

namespace rondo {

/// Schedules at the same time, whose values are multiplied. All durations count one unit.
class ScheduleProduct : public Scheduler {
 public:
  struct Options {
    std::vector<Factory<Scheduler>> schedulers = {};  ///< at least one; they take over the target
    SchedulerTarget target = {};
  };

  void count_durations(DurationCounter& counter) override;
  double length() const override;

 protected:
  /// \throws UsageError  without schedulers, or when one has a target of its own
  ScheduleProduct(const std::string& name, const Options& options);

  const std::vector<std::unique_ptr<Scheduler>>& parts() const { return parts_; }

 private:
  std::vector<std::unique_ptr<Scheduler>> parts_;
};

/// The product of the values: the first may be a rate, and the others factors of it.
/// Source: Composer, whose schedulers multiply.
class ProductLR final : public ScheduleProduct {
 public:
  explicit ProductLR(const Options& options) : ScheduleProduct("ProductLR", options) {}

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(ProductLR(options)); }

  double value(double done) const override;
};

/// The first schedule, times how each other one has changed since its beginning: s(t)/s(0).
/// Source: ChainedScheduler of PyTorch and of the Cerebras trainer.
class ChainedScheduler final : public ScheduleProduct {
 public:
  explicit ChainedScheduler(const Options& options)
      : ScheduleProduct("ChainedScheduler", options) {}

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(ChainedScheduler(options)); }

  /// \throws UsageError  when a schedule after the first begins at 0
  void count_durations(DurationCounter& counter) override;
  double value(double done) const override;
};

}  // namespace rondo
