#pragma once

#include <cstdint>

namespace rondo {

/// Which replays of a step are timed. A replay is timed either by instruction or as a whole, in
/// turns, so `active` of each take twice as many.
/// Source: torch.profiler.schedule.
struct TimingSchedule {
  int64_t wait = 0;    ///< replays that pass first, such as those in which kernels stand trial
  int64_t warmup = 0;  ///< replays after them, in which caches and the processor's clock settle
  int64_t active = 0;  ///< replays that are timed by instruction; 0: none

  /// So many timed replays with a wait and a warm-up that suit most steps.
  static TimingSchedule of(int64_t active) {
    constexpr int64_t kOnTrial = 5;
    constexpr int64_t kToWarmUp = 2;  // a step of microseconds is slower for its first hundred
    return active > 0 ? TimingSchedule{kOnTrial, kToWarmUp * active, active} : TimingSchedule();
  }

  /// Until the last one is timed.
  int64_t replays() const { return active > 0 ? wait + warmup + 2 * active : 0; }
};

/// What is measured of recorded steps while they run.
struct Instruments {
  TimingSchedule timing;
  /// Whether the first replay of each step is compared with the step as it was recorded, operator
  /// by operator. Takes memory for every value of the step, twice.
  bool compares_operators = false;
};

}  // namespace rondo
