#pragma once

#include <cmath>

// What formulas are made of.

namespace rondo::detail {

/// How much of `total` is done, in [0, 1]; all of nothing.
inline double progress(double done, double total) {
  return done >= total ? 1.0 : done / total;
}

/// The share that half a cosine leaves at `progress`, from 1 to 0.
inline double cosine_share(double progress) {
  constexpr double kPi = 3.14159265358979323846;
  return 0.5 * (1.0 + std::cos(kPi * progress));
}

/// `end`, and of the way to it the share that is left.
inline double between(double initial, double end, double share_left) {
  return end + (initial - end) * share_left;
}

}  // namespace rondo::detail
