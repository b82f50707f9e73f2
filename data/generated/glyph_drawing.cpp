#include "data/generated/glyph_drawing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "data/generated/glyph_shapes.h"

namespace rondo::detail {

namespace {

constexpr int kPixels = kGlyphSide * kGlyphSide;
constexpr int kPiecesOfSpan = 5;  // straight pieces between two points of a stroke

// How far a distortion of 1 goes. Chosen so that the glyphs look written by different hands and the
// quickstart's MLP gets about 98 % of unseen ones right.
constexpr double kPointJitter = 0.023;  // standard deviation, of the digit's box
constexpr double kWaveHeight = 0.026;   // of the elastic distortion, of the digit's box
constexpr double kShear = 0.22;
constexpr double kScale = 0.13;
constexpr double kShift = 1.2;  // pixels

constexpr double kWidth = 14.0;   // pixels of the digit's box
constexpr double kHeight = 20.0;  // as MNIST's digits

/// Moves every point of the box a little, neighbours alike, so that strokes which meet still do.
class ElasticField {
 public:
  ElasticField(double height, KeyedRandom& random) {
    for (Wave& wave : waves_) {
      wave = {random.uniform(-1.2, 1.2),
              random.uniform(-1.2, 1.2),
              random.uniform(0.0, 1.0),
              height * random.normal(),
              height * random.normal()};
    }
  }

  GlyphPoint moved(GlyphPoint p) const {
    GlyphPoint to = p;
    for (const Wave& wave : waves_) {
      const double height =
          std::sin(2 * M_PI * (wave.along_x * p.x + wave.along_y * p.y + wave.phase));
      to.x += wave.height_x * height;
      to.y += wave.height_y * height;
    }
    return to;
  }

 private:
  struct Wave {
    double along_x, along_y, phase, height_x, height_y;
  };

  std::array<Wave, 3> waves_{};
};

/// From the digit's box to pixels.
class Placement {
 public:
  Placement(const GlyphStyle& style, KeyedRandom& random) {
    const double limit = style.max_rotation_deg * M_PI / 180.0;
    const double angle = random.uniform(-limit, limit);
    const double d = style.distortion;
    const double shear = random.uniform(-kShear, kShear) * d;
    const double width = kWidth * std::exp(random.uniform(-kScale, kScale) * d);
    const double height = kHeight * std::exp(random.uniform(-kScale, kScale) * d);
    xx_ = std::cos(angle) * width;
    xy_ = (std::cos(angle) * shear - std::sin(angle)) * height;
    yx_ = std::sin(angle) * width;
    yy_ = (std::sin(angle) * shear + std::cos(angle)) * height;
    middle_.x = kGlyphSide / 2.0 + random.uniform(-kShift, kShift) * d;
    middle_.y = kGlyphSide / 2.0 + random.uniform(-kShift, kShift) * d;
  }

  GlyphPoint operator()(GlyphPoint p) const {
    const double x = p.x - 0.5;
    const double y = p.y - 0.5;
    return {middle_.x + xx_ * x + xy_ * y, middle_.y + yx_ * x + yy_ * y};
  }

 private:
  double xx_, xy_, yx_, yy_;
  GlyphPoint middle_;
};

/// Where the curve through `b` and `c`, coming from `a` and going to `d`, is at `t` in [0, 1].
/// Source: Catmull and Rom 1974, uniform parameters.
double curve(double a, double b, double c, double d, double t) {
  return b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
}

/// The stroke as straight pieces.
GlyphStroke flattened(const GlyphStroke& points) {
  GlyphStroke line;
  const size_t last = points.size() - 1;
  for (size_t i = 0; i < last; ++i) {
    const GlyphPoint& a = points[i == 0 ? 0 : i - 1];
    const GlyphPoint& b = points[i];
    const GlyphPoint& c = points[i + 1];
    const GlyphPoint& d = points[std::min(i + 2, last)];
    for (int piece = 0; piece < kPiecesOfSpan; ++piece) {
      const double t = static_cast<double>(piece) / kPiecesOfSpan;
      line.push_back({curve(a.x, b.x, c.x, d.x, t), curve(a.y, b.y, c.y, d.y, t)});
    }
  }
  line.push_back(points.back());
  return line;
}

/// A round pen, whose edge is one pixel soft; the darkest of overlapping strokes stays.
void draw_piece(GlyphPoint from, GlyphPoint to, double radius, float* pixels) {
  const double reach = radius + 0.5;
  const auto clamped = [](double x) {
    return static_cast<int>(std::clamp(x, 0.0, static_cast<double>(kGlyphSide)));
  };
  const int left = clamped(std::min(from.x, to.x) - reach);
  const int right = clamped(std::max(from.x, to.x) + reach + 1);
  const int top = clamped(std::min(from.y, to.y) - reach);
  const int bottom = clamped(std::max(from.y, to.y) + reach + 1);
  const double dx = to.x - from.x;
  const double dy = to.y - from.y;
  const double scale = 1.0 / std::max(dx * dx + dy * dy, 1e-12);
  for (int y = top; y < bottom; ++y) {
    for (int x = left; x < right; ++x) {
      const double px = x + 0.5 - from.x;  // the middle of the pixel
      const double py = y + 0.5 - from.y;
      const double t = std::clamp((px * dx + py * dy) * scale, 0.0, 1.0);
      const double away_x = px - t * dx;
      const double away_y = py - t * dy;
      const double distance = std::sqrt(away_x * away_x + away_y * away_y);
      const auto ink = static_cast<float>(std::clamp(reach - distance, 0.0, 1.0));
      float& pixel = pixels[y * kGlyphSide + x];
      pixel = std::max(pixel, ink);
    }
  }
}

/// Uneven ink and paper: each pixel by itself, up to `noise` either way.
void add_noise(double noise, double ink, KeyedRandom& random, float* pixels) {
  for (int i = 0; i < kPixels; i += 4) {
    uint64_t bits = random.next();  // 16 random bits a pixel are plenty
    for (int k = i; k < i + 4; ++k, bits >>= 16) {
      const double change = noise * (static_cast<double>(bits & 0xffff) / 32768.0 - 1.0);
      pixels[k] = static_cast<float>(std::clamp(ink * pixels[k] + change, 0.0, 1.0));
    }
  }
}

}  // namespace

void draw_glyph(int digit, const GlyphStyle& style, KeyedRandom& random, float* pixels) {
  std::fill(pixels, pixels + kPixels, 0.0F);
  const auto& shapes = glyph_shapes(digit);
  const GlyphShape& shape = shapes[random.below(shapes.size())];
  const Placement placed(style, random);
  const ElasticField elastic(kWaveHeight * style.distortion, random);
  const double radius = 1.15 + style.distortion * random.uniform(-0.35, 0.55);  // pixels
  for (GlyphStroke stroke : shape) {
    for (GlyphPoint& point : stroke) {
      point.x += kPointJitter * style.distortion * random.normal();
      point.y += kPointJitter * style.distortion * random.normal();
    }
    GlyphStroke line = flattened(stroke);
    for (GlyphPoint& point : line) {
      point = placed(elastic.moved(point));
    }
    const double pressure = style.distortion * random.uniform(-0.25, 0.25);  // from end to end
    for (size_t i = 1; i < line.size(); ++i) {
      const double way = static_cast<double>(i) / static_cast<double>(line.size()) - 0.5;
      draw_piece(line[i - 1], line[i], std::max(radius * (1.0 + pressure * way), 0.3), pixels);
    }
  }
  add_noise(style.noise, random.uniform(0.8, 1.0), random, pixels);
}

}  // namespace rondo::detail
