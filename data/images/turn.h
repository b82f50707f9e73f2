#pragma once

#include <cmath>
#include <cstdint>

namespace rondo::detail {

/// A place between pixels: rows from the top, pixels from the left.
struct Place {
  double y = 0.0;
  double x = 0.0;
};

/// A picture that is turned about its middle.
class Turn {
 public:
  Turn(double degrees, int64_t height, int64_t width)
      : sine_(std::sin(degrees * kPi / 180.0)),
        cosine_(std::cos(degrees * kPi / 180.0)),
        middle_{static_cast<double>(height - 1) / 2, static_cast<double>(width - 1) / 2} {}

  /// Where a pixel of the turned picture was before.
  Place source_of(int64_t y, int64_t x) const {
    const double down = static_cast<double>(y) - middle_.y;
    const double right = static_cast<double>(x) - middle_.x;
    return {middle_.y + cosine_ * down + sine_ * right, middle_.x - sine_ * down + cosine_ * right};
  }

 private:
  static constexpr double kPi = 3.14159265358979323846;

  double sine_;
  double cosine_;
  Place middle_;
};

}  // namespace rondo::detail
