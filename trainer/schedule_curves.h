#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/time.h"
#include "trainer/run_config.h"

namespace rondo {

/// A scheduled number over a run, for a picture.
struct ScheduleCurve {
  std::string number;          ///< "lr", or "lr of head" for one group of several
  std::string scheduler;       ///< its class
  TimeUnit unit;               ///< what the schedule counts
  double length;               ///< of the run, or of the schedule, in that unit
  std::vector<double> values;  ///< at equal distances from 0 to `length`
  std::string followed;        ///< the metric that moves it, of which nobody knows; "" for others
};

/// What each scheduler of a run writes into each group, from its beginning to its end. Builds model
/// and data set, in a scratch directory; trains nothing.
/// \param points  values of a curve, >= 2; fewer where the run has fewer updates
/// \throws UsageError  for a run without schedulers, or whose length nobody knows
std::vector<ScheduleCurve> schedule_curves(const RunConfig& run, int64_t points);

}  // namespace rondo
