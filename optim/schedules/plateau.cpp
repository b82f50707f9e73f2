#include "optim/schedules/plateau.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rondo {

namespace {

/// A line through values at 0, 1, 2 …
class RunningLine {
 public:
  void add(double y) {
    const double x = n_;
    n_ += 1.0;
    const double dx = x - mean_x_;
    const double dy = y - mean_y_;
    mean_x_ += dx / n_;
    mean_y_ += dy / n_;
    xx_ += dx * (x - mean_x_);
    xy_ += dx * (y - mean_y_);
    yy_ += dy * (y - mean_y_);
  }

  double count() const { return n_; }

  /// That the line rises; of three values or more.
  double probability_of_rise() const {
    const double slope = xy_ / xx_;
    const double residual = std::max(yy_ - slope * xy_, 0.0);
    const double error = std::sqrt(residual / (n_ - 2.0) / xx_);
    if (error == 0.0) {
      return slope > 0.0 ? 1.0 : (slope < 0.0 ? 0.0 : 0.5);
    }
    return 0.5 * std::erfc(-slope / error / std::sqrt(2.0));
  }

 private:
  double n_ = 0.0;
  double mean_x_ = 0.0;
  double mean_y_ = 0.0;
  double xx_ = 0.0;  // sums of products of deviations
  double xy_ = 0.0;
  double yy_ = 0.0;
};

constexpr double kHintOfDecrease = 0.51;  // dlib's

/// Values above `most` are counted and not looked at.
size_t count_up_to(const std::vector<double>& values, double most) {
  RunningLine backwards;
  size_t count = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = values[values.size() - 1 - i];
    if (value <= most) {
      backwards.add(value);
    }
    // What rises backwards has fallen.
    if (backwards.count() > 2.0 && backwards.probability_of_rise() < kHintOfDecrease) {
      count = i + 1;
    }
  }
  return count;
}

}  // namespace

size_t count_without_decrease(const std::vector<double>& values) {
  return count_up_to(values, std::numeric_limits<double>::infinity());
}

size_t count_without_decrease_robust(const std::vector<double>& values) {
  constexpr double kKept = 0.9;
  if (values.empty()) {
    return 0;
  }
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const auto last = static_cast<double>(sorted.size() - 1);
  return count_up_to(values, sorted[static_cast<size_t>(std::lround(last * kKept))]);
}

bool is_plateau(const std::vector<double>& values) {
  return count_without_decrease(values) == values.size() &&
         count_without_decrease_robust(values) == values.size();
}

}  // namespace rondo
