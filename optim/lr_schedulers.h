#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/time.h"
#include "optim/scheduler.h"

namespace rondo {

/// Schedules of one formula each. `t` is what is done, in the unit of T, which is `total_iters`;
/// names and formulas are those of the Cerebras trainer. "Learning rate" is what they mostly drive:
/// any number of an optimizer can stand in its place.

/// Always `learning_rate`.
class ConstantLR final : public Scheduler {
 public:
  struct Options {
    double learning_rate = 1e-3;
    std::optional<Time> total_iters = {};            ///< none: for ever; a sequence needs it
    std::string param_group_key = "lr";              ///< as in SchedulerTarget
    std::vector<std::string> param_group_tags = {};  ///< as in SchedulerTarget
  };

  /// \throws UsageError  when the value is not a number
  explicit ConstantLR(const Options& options);

  void count_durations(DurationCounter& counter) override;
  double value(double done) const override;

  double length() const override { return total_; }

 private:
  Options options_;
  double total_ = kEndless;
};

/// A straight line, `initial + (end - initial) t/T`, then `end`. With T = 0, `end` from the
/// beginning.
class LinearLR final : public Scheduler {
 public:
  struct Options {
    double initial_learning_rate = 1e-3;
    double end_learning_rate = 0.0;
    Time total_iters = 1.0;                          ///< T
    std::string param_group_key = "lr";              ///< as in SchedulerTarget
    std::vector<std::string> param_group_tags = {};  ///< as in SchedulerTarget
  };

  /// \throws UsageError  when a value is not a number
  explicit LinearLR(const Options& options);

  void count_durations(DurationCounter& counter) override;
  double value(double done) const override;

  double length() const override { return total_; }

 private:
  Options options_;
  double total_ = 0.0;
};

/// Half a cosine, `end + (initial - end) (1 + cos(pi t/T))/2`, then `end`. With T = 0, `end` from
/// the beginning. Source: Loshchilov and Hutter 2017, arXiv:1608.03983, equation 5 without
/// restarts.
class CosineDecayLR final : public Scheduler {
 public:
  struct Options {
    double initial_learning_rate = 1e-3;
    double end_learning_rate = 0.0;
    Time total_iters = 1.0;                          ///< T
    std::string param_group_key = "lr";              ///< as in SchedulerTarget
    std::vector<std::string> param_group_tags = {};  ///< as in SchedulerTarget
  };

  /// \throws UsageError  when a value is not a number
  explicit CosineDecayLR(const Options& options);

  void count_durations(DurationCounter& counter) override;
  double value(double done) const override;

  double length() const override { return total_; }

 private:
  Options options_;
  double total_ = 0.0;
};

/// Stairs: `initial * gamma^floor(t/step_size)`.
class StepLR final : public Scheduler {
 public:
  struct Options {
    double initial_learning_rate = 1e-3;
    Time step_size = 1;  ///< > 0
    double gamma = 0.1;
    std::optional<Time> total_iters = {};            ///< none: for ever; a sequence needs it
    std::string param_group_key = "lr";              ///< as in SchedulerTarget
    std::vector<std::string> param_group_tags = {};  ///< as in SchedulerTarget
  };

  /// \throws UsageError  when a value is not a number
  explicit StepLR(const Options& options);

  void count_durations(DurationCounter& counter) override;
  double value(double done) const override;

  double length() const override { return total_; }

 private:
  Options options_;
  double step_ = 1.0;
  double total_ = kEndless;
};

}  // namespace rondo
