#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "record/run_record.h"

namespace rondo {

/// How a metric is drawn.
struct SeriesView {
  std::string x = "update";    ///< "update", "epoch", "samples", "tokens" or "time"
  double smooth = 0.0;         ///< weight of what was before, 0 to below 1
  int64_t points = 1000;       ///< most buckets, >= 1
  std::optional<double> from;  ///< least x, where the user zoomed
  std::optional<double> to;    ///< greatest x
};

/// A metric in buckets along x. A bucket has the x of its last point, the mean of the smoothed
/// values, and the least and greatest raw value.
struct Series {
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> low;
  std::vector<double> high;
  int64_t count = 0;  ///< points within the range
  std::string why;    ///< where there is no x: the reason
};

/// Whether `x` is one that a view can have.
bool is_series_axis(const std::string& x);

/// Smooths a metric over all of its points, and then puts what lies in the range into buckets. The
/// width of a bucket is a power of two at multiples of itself, so that buckets stay while a run
/// goes on. As many points as buckets, or fewer, come as they are. Values that are not finite do
/// not smooth; a bucket that has no others is not finite either.
Series series_of(const RunRecord& run, const std::string& metric, const SeriesView& view);

}  // namespace rondo
