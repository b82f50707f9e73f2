#pragma once

#include <cmath>

namespace rondo {

/// 0 / 0 is -NaN on some processors; nobody means that sign.
inline double without_sign_of_nan(double value) {
  return std::isnan(value) ? std::fabs(value) : value;
}

}  // namespace rondo
