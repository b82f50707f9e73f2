#pragma once

#include "core/random.h"

namespace rondo::detail {

constexpr int kGlyphSide = 28;  // pixels

/// How far glyphs stray from their shapes; see Glyphs::Options.
struct GlyphStyle {
  double max_rotation_deg = 0.0;
  double distortion = 0.0;
  double noise = 0.0;
};

/// Writes `digit` as some hand would.
/// \param pixels  28 x 28, row by row; all are set, to values in [0, 1]
void draw_glyph(int digit, const GlyphStyle& style, KeyedRandom& random, float* pixels);

}  // namespace rondo::detail
