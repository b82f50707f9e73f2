#include "trainer/fastest_threads.h"

#include <algorithm>

#include "core/stopwatch.h"

namespace rondo {

namespace {

// Of the time under fewer threads. The choice is to lie within 5 % of the best, and noise takes its
// share of that: of a step that more threads do nothing for (20 us, 28 calibrations on a quiet
// machine) the times under 1 and 2 threads were 0 to 2.4 % apart.
constexpr double kWorthIt = 0.97;

// Times the fastest: is not timed again. A busy moment of the machine may well be half a round.
constexpr double kHopelessAtFirst = 2;
constexpr double kHopeless = 1.25;
constexpr int kFewestRounds = 3;
constexpr int kMostRounds = 6;
constexpr double kEnough = 2;  // seconds for each number of threads

/// Those that may yet turn out to be the fastest.
std::vector<ThreadTiming*> contenders(std::vector<ThreadTiming>& timings, double hopeless) {
  const auto fastest = std::min_element(
      timings.begin(), timings.end(), [](const ThreadTiming& a, const ThreadTiming& b) {
        return a.seconds < b.seconds;
      });
  std::vector<ThreadTiming*> left;
  for (ThreadTiming& timing : timings) {
    if (timing.seconds <= hopeless * fastest->seconds) {
      left.push_back(&timing);
    }
  }
  return left;
}

}  // namespace

ThreadTiming ThreadTimings::best() const {
  ThreadTiming best = all.front();
  for (const ThreadTiming& timing : all) {
    best = timing.seconds < best.seconds * kWorthIt ? timing : best;
  }
  return best;
}

ThreadTimings time_in_turns(const std::vector<int>& numbers, const ThreadTimer& timer) {
  ThreadTimings timings;
  for (const int threads : numbers) {
    timings.all.push_back({threads});
  }
  std::vector<ThreadTiming*> timed = contenders(timings.all, kHopelessAtFirst);
  const Stopwatch watch;
  const auto goes_on = [&](int round) {
    const bool is_short = watch.seconds() < kEnough * static_cast<double>(timed.size());
    return timings.trouble.empty() && timed.size() > 1 &&
           (round < kFewestRounds || (round < kMostRounds && is_short));
  };
  for (int round = 0; round == 0 || goes_on(round); ++round) {
    for (ThreadTiming* const timing : timed) {
      const UpdateTime time = timer.time(timing->threads);
      timing->seconds = std::min(timing->seconds, time.median_s.value_or(timing->seconds));
      timings.trouble = time.trouble.empty() ? timings.trouble : time.trouble;
      if (timer.gives_up()) {
        return timings;
      }
    }
    timed = contenders(timings.all, round == 0 ? kHopelessAtFirst : kHopeless);
  }
  return timings;
}

}  // namespace rondo
