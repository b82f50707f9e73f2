#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "trainer/dry_run.h"

namespace rondo {

/// How long an update takes under a number of threads.
struct ThreadTiming {
  int threads = 1;
  double seconds = std::numeric_limits<double>::infinity();  ///< of an update; infinite: not timed

  bool is_timed() const { return seconds < std::numeric_limits<double>::infinity(); }
};

/// What times updates under each number of threads.
struct ThreadTimer {
  std::function<UpdateTime(int threads)> time;
  std::function<bool()> gives_up;  ///< asked behind each timing
};

/// What they found.
struct ThreadTimings {
  std::vector<ThreadTiming> all;  ///< as the numbers were given, the fastest of each one's rounds
  std::string trouble;            ///< what ended a timing early; "" when nothing did

  /// The fastest, where one with more threads than an earlier one must gain 3 % on it. Not timed
  /// when none is.
  ThreadTiming best() const;
};

/// Times updates under each number of threads once, and those that come near the fastest three to
/// six times, in turns, as long as that takes no more than two seconds each: a machine that slows
/// down or speeds up meanwhile does so for all of them. After the first round near is what takes up
/// to twice as long, as something else may have kept the machine busy just then; later it is 1.25
/// times. Trouble under one number ends it after the round, giving up at once.
/// \param numbers  ascending, at least one
ThreadTimings time_in_turns(const std::vector<int>& numbers, const ThreadTimer& timer);

}  // namespace rondo
