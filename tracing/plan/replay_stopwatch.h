#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/step_report.h"
#include "tracing/plan/instruments.h"
#include "tracing/plan/plan.h"

namespace rondo {

/// Times the instructions of some replays, and in turns with them as many whole replays, against
/// which the sum of the instructions can be held. One clock is read after each instruction; what
/// reading it takes is measured and left out. A stopwatch with nothing to time costs a branch.
class ReplayStopwatch {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = Clock::time_point (*)();

  /// \param instructions  of the plan
  /// \param schedule      which replays to time
  ReplayStopwatch(size_t instructions, const TimingSchedule& schedule, Now now = &Clock::now);

  /// A replay begins.
  void start() {
    if (left_ > 0) {
      begin();
    }
  }

  /// The plan's instruction at `place` is done, and what was begun since the last lap with it.
  void lap(size_t place) {
    if (is_timing_laps_) {
      add(place);
    }
  }

  /// The replay is over.
  void stop() {
    if (is_timing_) {
      end();
    }
  }

  StepTimeline timeline(const Plan& plan) const;

 private:
  void begin();
  void add(size_t place);
  void end();
  std::vector<Clock::duration> sums_of_laps() const;

  size_t instructions_;
  int64_t replays_;
  Now now_;
  int64_t left_;  // replays to come, the skipped ones too
  bool is_timing_ = false;
  bool is_timing_laps_ = false;
  Clock::time_point begin_;
  Clock::time_point last_;
  std::vector<Clock::duration> wholes_;
  std::vector<Clock::duration>
      laps_;  // a row of the plan's instructions for each timed replay; 0: not run
};

}  // namespace rondo
