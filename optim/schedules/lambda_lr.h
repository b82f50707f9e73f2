#pragma once

#include <functional>

#include "optim/scheduler.h"

namespace rondo {

/// A function of your own, in C++ only: `use<LambdaLR>({[](double t) { return 0.1 / (1.0 + t);
/// }})`. It gets the updates that are done, or what the warm-up counts, and keeps no state: a
/// resumed run calls it with the numbers that an uninterrupted one would.
class LambdaLR final : public Scheduler {
 public:
  struct Options {
    std::function<double(double)> function = {};
    SchedulerTarget target = {};
  };

  /// \throws UsageError  without a function
  explicit LambdaLR(const Options& options);

  void count_durations(DurationCounter&) override {}

  double value(double done) const override { return function_(done); }

  double length() const override { return kEndless; }

 private:
  std::function<double(double)> function_;
};

}  // namespace rondo
