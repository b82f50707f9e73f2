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
  explicit DurationCounter(const RunLength& run) : run_(run) {}

  /// `duration` as an amount of `unit()`, which the first one sets that is not 0.
  /// \param option  "LinearLR.total_iters", for messages
  /// \throws UsageError  when it cannot be counted, is less than `least`, or counts another unit
  double count(const std::string& option, const Time& duration, int64_t least);

  /// Updates as long as nothing was counted.
  TimeUnit unit() const { return first_ ? first_->counted.unit() : TimeUnit::Update; }

 private:
  struct First {
    std::string option;
    Time counted;
  };

  RunLength run_;
  std::optional<First> first_;
};

}  // namespace rondo
