#pragma once

#include <vector>

namespace rondo::detail {

struct GlyphPoint {
  double x = 0.0;  // to the right, the digit's box is [0, 1]
  double y = 0.0;  // downwards
};

/// A pen stroke: a smooth curve through its points.
using GlyphStroke = std::vector<GlyphPoint>;

/// One way to write a digit.
using GlyphShape = std::vector<GlyphStroke>;

/// The ways to write `digit`, 0 … 9.
const std::vector<GlyphShape>& glyph_shapes(int digit);

}  // namespace rondo::detail
