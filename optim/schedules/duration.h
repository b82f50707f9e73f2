#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/option_types.h"
#include "core/time.h"
#include "optim/duration_counter.h"

namespace rondo {

/// A duration among the options of a schedule: a Time, and once it is counted an amount, which
/// formulas read as a number.
class Duration {
 public:
  /// Of all that makes a Time: `250`, `0.25`, "3ep".
  template <class T,
            class = std::enable_if_t<std::is_constructible_v<Time, T&&> &&
                                     !std::is_same_v<std::decay_t<T>, Duration>>>
  Duration(T&& time) : time_(std::forward<T>(time)) {}  // NOLINT: as Time itself

  const Time& time() const { return time_; }

  /// 0 before it is counted.
  double amount() const { return amount_; }

  operator double() const { return amount_; }  // NOLINT(google-explicit-constructor)

  /// Counts it. \throws UsageError  see DurationCounter::count
  void count(DurationCounter& counter,
             const std::string& option,
             int64_t least,
             bool is_scaled = true) {
    amount_ = counter.count(option, time_, least, is_scaled);
  }

 private:
  Time time_;
  double amount_ = 0.0;
};

template <>
struct OptionType<Duration> {
  static std::string name() { return OptionType<Time>::name(); }

  static std::optional<Duration> read(const ConfigValue& value, FaultSink& faults) {
    const std::optional<Time> time = OptionType<Time>::read(value, faults);
    return time ? std::optional<Duration>(*time) : std::nullopt;
  }

  static ConfigValue write(const Duration& duration) {
    return OptionType<Time>::write(duration.time());
  }
};

}  // namespace rondo
