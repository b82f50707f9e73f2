#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/plan/plan.h"
#include "backends/step_report.h"

namespace rondo {

/// Times the instructions of some replays. One clock is read after each instruction, so that the
/// times add up to the whole; a stopwatch with nothing to time costs a branch.
class ReplayStopwatch {
 public:
  /// \param instructions  of the plan
  /// \param replays       how many to time, after those in which kernels are on trial; 0: none
  ReplayStopwatch(size_t instructions, int64_t replays);

  /// A replay begins.
  void start() {
    if (left_ > 0) {
      begin();
    }
  }

  /// The plan's instruction at `place` is done, and what was begun since the last lap with it.
  void lap(size_t place) {
    if (is_timing_) {
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
  using Clock = std::chrono::steady_clock;

  void begin();
  void add(size_t place);
  void end();

  int64_t left_;  // replays to come, the skipped ones too
  int64_t replays_;
  int64_t timed_ = 0;
  bool is_timing_ = false;
  Clock::time_point begin_;
  Clock::time_point last_;
  Clock::duration whole_{};
  std::vector<Clock::duration> sums_;  // one an instruction of the plan
};

}  // namespace rondo
