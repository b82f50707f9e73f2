#pragma once

#include <cstddef>
#include <vector>

namespace rondo {

/// How many of the newest values there are before a line through them falls with a probability of
/// 0.51 or more: all of them when nothing says that they fall. The line is that of least squares,
/// its slope normal around the one found, with that one's standard error.
/// Source: `count_steps_without_decrease` of dlib (dlib/statistics/running_gradient.h).
size_t count_without_decrease(const std::vector<double>& values);

/// The same without the largest tenth of the values, which a single bad batch may be.
/// Source: `count_steps_without_decrease_robust` of dlib.
size_t count_without_decrease_robust(const std::vector<double>& values);

/// Whether neither count sees the values fall: dlib's test before it lowers the learning rate.
bool is_plateau(const std::vector<double>& values);

}  // namespace rondo
