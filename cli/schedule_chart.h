#pragma once

#include <string>
#include <vector>

#include "trainer/schedule_curves.h"

namespace rondo {

/// A curve in characters, with its scale: a few lines that end with a line break.
std::string text_chart(const ScheduleCurve& curve);

/// All curves as one SVG document, one below the other.
std::string svg_chart(const std::vector<ScheduleCurve>& curves);

}  // namespace rondo
