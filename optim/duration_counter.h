#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/time.h"

namespace rondo {

/// Turns the durations of one schedule, those of its parts among them, into amounts of one unit:
/// what is counted in samples and what is counted in updates can be neither added nor compared.
class DurationCounter {
 public:
  /// \param ratio  `loop.scale_schedule_ratio`: stretches every duration but fractions of the run,
  ///               which follow its length
  explicit DurationCounter(const RunLength& run, double ratio = 1.0) : run_(run), ratio_(ratio) {}

  /// `duration` as an amount of `unit()`, which the first one sets that is not 0.
  /// \param option     "LinearLR.total_iters", for messages
  /// \param is_scaled  whether the ratio stretches it
  /// \throws UsageError  when it cannot be counted, is less than `least`, counts another unit, or
  ///                     nothing of it is left
  double count(const std::string& option,
               const Time& duration,
               int64_t least,
               bool is_scaled = true);

  /// Whether durations are stretched, and then rounded down.
  bool is_scaled() const { return ratio_ != 1.0; }

  /// Updates as long as nothing was counted.
  TimeUnit unit() const { return first_ ? first_->counted.unit() : TimeUnit::Update; }

 private:
  struct First {
    std::string option;
    Time counted;
  };

  Time scaled(const std::string& option, const Time& duration) const;

  RunLength run_;
  double ratio_;
  std::optional<First> first_;
};

}  // namespace rondo
