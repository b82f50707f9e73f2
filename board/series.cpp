#include "board/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace rondo {

namespace {

struct Point {
  double x = 0.0;
  double raw = 0.0;
  double smooth = 0.0;
};

/// Of the exponential kind, as if the mean of what came so far had been there before.
class Smoothing {
 public:
  explicit Smoothing(double weight) : weight_(weight) {}

  double next(double value) {
    if (!std::isfinite(value) || weight_ <= 0.0) {
      return value;
    }
    sum_ = weight_ * sum_ + (1.0 - weight_) * value;
    missing_ = missing_ < kNothing ? 0.0 : missing_ * weight_;
    return missing_ == 0.0 ? sum_ : sum_ / (1.0 - missing_);
  }

 private:
  static constexpr double kNothing = 1e-18;  // numbers that are denormal later are slow

  double weight_;
  double sum_ = 0.0;
  double missing_ = 1.0;  // weight that no value has
};

double member_of(const RecordPosition& position, const std::string& x) {
  return x == "epoch" ? position.epoch : x == "samples" ? position.samples : position.tokens;
}

/// Calls `visit(x, point)` for the points of a metric that have an x.
template <class Visit>
void for_each_point(const RunRecord& run,
                    const std::vector<RecordPoint>& points,
                    const SeriesView& view,
                    const Visit& visit) {
  if (view.x == "time") {
    for (const RecordPoint& point : points) {
      visit(point.time - run.begin, point);
    }
    return;
  }
  if (view.x == "update") {
    for (const RecordPoint& point : points) {
      visit(static_cast<double>(point.step), point);
    }
    return;
  }
  auto position = run.positions.begin();
  for (const RecordPoint& point : points) {
    while (position != run.positions.end() && position->step < point.step) {
      ++position;
    }
    if (position != run.positions.end() && position->step == point.step) {
      visit(member_of(*position, view.x), point);
    }
  }
}

/// What lies in the range of a view.
struct Extent {
  int64_t count = 0;
  double least = 0.0;
  double greatest = 0.0;
  bool is_sorted = true;
  bool has_x = false;  ///< also outside of the range
};

bool is_in_range(double x, const SeriesView& view) {
  return !(view.from && x < *view.from) && !(view.to && x > *view.to);
}

Extent extent_of(const RunRecord& run,
                 const std::vector<RecordPoint>& points,
                 const SeriesView& view) {
  Extent extent;
  double before = -std::numeric_limits<double>::infinity();
  const bool needs_none = view.x == "update" || view.x == "time";
  for_each_point(run, points, view, [&](double x, const RecordPoint&) {
    extent.has_x = extent.has_x || needs_none || x != 0.0;
    if (is_in_range(x, view)) {
      extent.least = extent.count == 0 ? x : std::min(extent.least, x);
      extent.greatest = extent.count == 0 ? x : std::max(extent.greatest, x);
      ++extent.count;
      extent.is_sorted = extent.is_sorted && x >= before;
      before = x;
    }
  });
  return extent;
}

/// The least power of two with which a range has no more than so many buckets.
double bucket_width(double range, int64_t most) {
  const double exact = range / static_cast<double>(std::max<int64_t>(most - 1, 1));
  return exact > 0.0 ? std::exp2(std::ceil(std::log2(exact))) : 1.0;
}

/// Adds points to the last bucket of a series.
class Bucket {
 public:
  void add(const Point& point) {
    x_ = point.x;
    ++count_;
    not_finite_ = std::isfinite(point.raw) ? not_finite_ : point.raw;
    if (std::isfinite(point.smooth)) {
      sum_ += point.smooth;
      ++finite_;
    }
    low_ = std::isnan(low_) || point.raw < low_ ? point.raw : low_;
    high_ = std::isnan(high_) || point.raw > high_ ? point.raw : high_;
  }

  bool is_empty() const { return count_ == 0; }

  void end(Series& series) {
    series.x.push_back(x_);
    series.y.push_back(finite_ > 0 ? sum_ / static_cast<double>(finite_) : not_finite_);
    series.low.push_back(low_);
    series.high.push_back(high_);
    *this = {};
  }

 private:
  double x_ = 0.0;
  double sum_ = 0.0;
  double low_ = std::numeric_limits<double>::quiet_NaN();
  double high_ = std::numeric_limits<double>::quiet_NaN();
  double not_finite_ = std::numeric_limits<double>::quiet_NaN();
  int64_t finite_ = 0;
  int64_t count_ = 0;
};

/// Puts points, in the order of their x, into a series.
class Buckets {
 public:
  Buckets(const Extent& extent, int64_t most)
      : is_whole_(extent.count <= most),
        width_(bucket_width(extent.greatest - extent.least, most)) {
    series_.count = extent.count;
  }

  void add(const Point& point) {
    if (!bucket_.is_empty() && (is_whole_ || point.x >= end_)) {
      bucket_.end(series_);
    }
    if (bucket_.is_empty()) {
      const double beyond = std::nextafter(point.x, std::numeric_limits<double>::infinity());
      end_ = std::max((std::floor(point.x / width_) + 1.0) * width_, beyond);
    }
    bucket_.add(point);
  }

  Series end() {
    if (!bucket_.is_empty()) {
      bucket_.end(series_);
    }
    return std::move(series_);
  }

 private:
  bool is_whole_;
  double width_;
  double end_ = 0.0;
  Bucket bucket_;
  Series series_;
};

}  // namespace

bool is_series_axis(const std::string& x) {
  return x == "update" || x == "epoch" || x == "samples" || x == "tokens" || x == "time";
}

Series series_of(const RunRecord& run, const std::string& metric, const SeriesView& view) {
  Series nothing;
  const auto found = run.metrics.find(metric);
  if (found == run.metrics.end()) {
    nothing.why = "the run did not record this metric";
    return nothing;
  }
  const Extent extent = extent_of(run, found->second, view);
  if (!extent.has_x) {
    nothing.why = fmt::format("the run did not record its {}", view.x);
    return nothing;
  }
  Smoothing smoothing(view.smooth);
  Buckets buckets(extent, view.points);
  std::vector<Point> unsorted;  // such as over a clock that was set back
  for_each_point(run, found->second, view, [&](double x, const RecordPoint& point) {
    const Point drawn = {x, point.value, smoothing.next(point.value)};
    if (is_in_range(x, view)) {
      extent.is_sorted ? buckets.add(drawn) : unsorted.push_back(drawn);
    }
  });
  std::stable_sort(
      unsorted.begin(), unsorted.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
  for (const Point& point : unsorted) {
    buckets.add(point);
  }
  return buckets.end();
}

}  // namespace rondo
