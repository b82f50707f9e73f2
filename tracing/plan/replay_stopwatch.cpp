#include "tracing/plan/replay_stopwatch.h"

#include <algorithm>
#include <numeric>

#include "tracing/program/step_work.h"

namespace rondo {

namespace {

using Duration = ReplayStopwatch::Clock::duration;

// Places of the times of the middle half, fastest first: what the system interrupted, or a log made
// longer, is not typical. Unlike medians of instructions, means over it add up.
std::vector<size_t> middle_half(const std::vector<Duration>& times) {
  std::vector<size_t> places(times.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::sort(places.begin(), places.end(), [&](size_t a, size_t b) { return times[a] < times[b]; });
  const auto quarter = static_cast<std::ptrdiff_t>(places.size() / 4);
  return {places.begin() + quarter, places.end() - quarter};
}

// Of times that are not empty, in which the clock was read once each; 0 is what was not run.
template <class Time>
double mean_seconds(const std::vector<size_t>& places, Duration reading, const Time& time_at) {
  Duration sum(0);
  for (const size_t place : places) {
    const Duration time = time_at(place);
    sum += time == Duration(0) ? time : time - reading;
  }
  const double mean =
      std::chrono::duration<double>(sum).count() / static_cast<double>(places.size());
  return std::max(mean, 0.0);  // what takes nothing may come out below
}

// What passes from one reading of the clock to the next.
Duration time_of_reading(ReplayStopwatch::Now now) {
  constexpr int kReadings = 1000;
  std::vector<Duration> times;
  auto last = now();
  for (int i = 0; i < kReadings; ++i) {
    const auto next = now();
    times.push_back(next - last);
    last = next;
  }
  std::nth_element(times.begin(), times.begin() + kReadings / 2, times.end());
  return times[kReadings / 2];
}

}  // namespace

ReplayStopwatch::ReplayStopwatch(size_t instructions, const TimingSchedule& schedule, Now now)
    : instructions_(instructions),
      replays_(schedule.active),
      now_(now),
      left_(schedule.replays()) {}

void ReplayStopwatch::begin() {
  is_timing_ = left_ <= 2 * replays_;
  is_timing_laps_ = is_timing_ && left_ % 2 == 1;
  --left_;
  if (is_timing_laps_) {
    laps_.resize(laps_.size() + instructions_);
  }
  begin_ = last_ = now_();
}

void ReplayStopwatch::add(size_t place) {
  const Clock::time_point now = now_();
  laps_[laps_.size() - instructions_ + place] = now - last_;
  last_ = now;
}

void ReplayStopwatch::end() {
  if (!is_timing_laps_) {
    wholes_.push_back(now_() - begin_);
  }
  is_timing_ = is_timing_laps_ = false;
}

std::vector<Duration> ReplayStopwatch::sums_of_laps() const {
  std::vector<Duration> sums;
  for (auto row = laps_.begin(); row != laps_.end(); row += instructions_) {
    sums.push_back(std::accumulate(row, row + instructions_, Duration(0)));
  }
  return sums;
}

StepTimeline ReplayStopwatch::timeline(const Plan& plan) const {
  StepTimeline timeline;
  if (laps_.empty() || wholes_.empty()) {
    return timeline;
  }
  const Duration reading = time_of_reading(now_);
  timeline.replay_s =
      mean_seconds(middle_half(wholes_), reading, [&](size_t whole) { return wholes_[whole]; });
  timeline.replays = static_cast<int64_t>(laps_.size() / instructions_);
  const std::vector<size_t> rows = middle_half(sums_of_laps());
  for (size_t i = 0; i < instructions_; ++i) {
    const auto lap = [&](size_t row) { return laps_[row * instructions_ + i]; };
    const Instruction& instruction = plan.program.instructions[plan.instructions[i].index];
    timeline.instructions.push_back({operator_name(instruction.op),
                                     module_of(plan.program, instruction),
                                     source_of(plan.program, instruction),
                                     to_text(instruction),
                                     mean_seconds(rows, reading, lap),
                                     bytes_of(plan.program, instruction)});
  }
  return timeline;
}

}  // namespace rondo
