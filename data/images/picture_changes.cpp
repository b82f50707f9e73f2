#include "data/images/picture_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/require.h"
#include "data/images/turn.h"

namespace rondo {

namespace {

/// The value at a place between pixels; black outside.
float between_pixels(const float* plane, int64_t height, int64_t width, double y, double x) {
  const auto top = static_cast<int64_t>(std::floor(y));
  const auto left = static_cast<int64_t>(std::floor(x));
  double sum = 0.0;
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 2; ++j) {
      const int64_t row = top + i;
      const int64_t column = left + j;
      if (row >= 0 && row < height && column >= 0 && column < width) {
        const double share = (1.0 - std::abs(y - static_cast<double>(row))) *
                             (1.0 - std::abs(x - static_cast<double>(column)));
        sum += share * static_cast<double>(plane[row * width + column]);
      }
    }
  }
  return static_cast<float>(sum);
}

void rotate(const Pixels& pixels, double degrees) {
  const int64_t plane = pixels.height * pixels.width;
  const std::vector<float> before(pixels.values, pixels.values + pixels.channels * plane);
  const detail::Turn turn(degrees, pixels.height, pixels.width);
  for (int64_t y = 0; y < pixels.height; ++y) {
    for (int64_t x = 0; x < pixels.width; ++x) {
      const detail::Place from = turn.source_of(y, x);
      for (int64_t c = 0; c < pixels.channels; ++c) {
        pixels.values[c * plane + y * pixels.width + x] =
            between_pixels(before.data() + c * plane, pixels.height, pixels.width, from.y, from.x);
      }
    }
  }
}

void push(const Pixels& pixels, int64_t down, int64_t right) {
  const int64_t plane = pixels.height * pixels.width;
  const std::vector<float> before(pixels.values, pixels.values + pixels.channels * plane);
  std::fill(pixels.values, pixels.values + pixels.channels * plane, 0.0F);
  const int64_t first = std::max<int64_t>(right, 0);
  const int64_t count = pixels.width - std::abs(right);
  for (int64_t row = 0; row < pixels.channels * pixels.height && count > 0; ++row) {
    const int64_t y = row % pixels.height - down;
    if (y >= 0 && y < pixels.height) {
      const float* const from = before.data() + (row - down) * pixels.width + first - right;
      std::copy(from, from + count, pixels.values + row * pixels.width + first);
    }
  }
}

/// Source: ITU-R BT.601.
float grey_of(const Pixels& pixels, int64_t i) {
  const int64_t plane = pixels.height * pixels.width;
  const float* const at = pixels.values + i;
  return pixels.channels == 1 ? at[0]
                              : 0.299F * at[0] + 0.587F * at[plane] + 0.114F * at[2 * plane];
}

float mean_grey(const Pixels& pixels) {
  const int64_t plane = pixels.height * pixels.width;
  double sum = 0.0;
  for (int64_t i = 0; i < plane; ++i) {
    sum += static_cast<double>(grey_of(pixels, i));
  }
  return static_cast<float>(sum / static_cast<double>(plane));
}

/// Multiplies differences from `middle(pixel)`.
template <class Middle>
void stretch(const Pixels& pixels, double factor, Middle middle) {
  const int64_t plane = pixels.height * pixels.width;
  const auto scale = static_cast<float>(factor);
  for (int64_t i = 0; i < plane; ++i) {
    const float from = middle(i);
    for (int64_t c = 0; c < pixels.channels; ++c) {
      float& value = pixels.values[c * plane + i];
      value = std::clamp(from + scale * (value - from), 0.0F, 1.0F);
    }
  }
}

/// Turns the hue of a colour. Source: Smith 1978, Color gamut transform pairs.
void turn_hue(float (&colour)[3], float turn) {
  const float most = std::max({colour[0], colour[1], colour[2]});
  const float least = std::min({colour[0], colour[1], colour[2]});
  const float range = most - least;
  if (range <= 0.0F) {
    return;
  }
  const float sixths = most == colour[0]   ? (colour[1] - colour[2]) / range
                       : most == colour[1] ? 2.0F + (colour[2] - colour[0]) / range
                                           : 4.0F + (colour[0] - colour[1]) / range;
  const float hue = sixths + 6.0F * turn;
  for (int c = 0; c < 3; ++c) {
    const float at = std::fmod(5.0F - 2.0F * static_cast<float>(c) + hue + 12.0F, 6.0F);
    colour[c] = most - range * std::clamp(std::min(at, 4.0F - at), 0.0F, 1.0F);
  }
}

void turn_hues(const Pixels& pixels, double turn) {
  const int64_t plane = pixels.height * pixels.width;
  for (int64_t i = 0; i < plane; ++i) {
    float* const at = pixels.values + i;
    float colour[] = {at[0], at[plane], at[2 * plane]};
    turn_hue(colour, static_cast<float>(turn));
    at[0] = colour[0];
    at[plane] = colour[1];
    at[2 * plane] = colour[2];
  }
}

double factor_of(double most, KeyedRandom& random) {
  return random.uniform(1.0 - most, 1.0 + most);
}

int64_t offset_of(int64_t most, KeyedRandom& random) {
  return static_cast<int64_t>(random.below(static_cast<uint64_t>(2 * most + 1))) - most;
}

}  // namespace

void check_changes(const std::string& owner, const PictureChanges& changes, int64_t channels) {
  const auto require_range = [&](const char* name, double value, double most) {
    detail::require(
        value >= 0 && value <= most, owner + ": " + name, fmt::format("in [0, {}]", most), value);
  };
  require_range("rotation", changes.rotation, 180);
  require_range("brightness", changes.brightness, 1);
  require_range("contrast", changes.contrast, 1);
  require_range("saturation", changes.saturation, 1);
  require_range("hue", changes.hue, 0.5);
  constexpr int64_t kMostPadding = 1 << 20;
  detail::require(changes.padding >= 0 && changes.padding <= kMostPadding,
                  owner + ": padding",
                  "in [0, 2^20]",
                  changes.padding);
  detail::require(channels == 3 || (changes.saturation == 0 && changes.hue == 0),
                  owner + ": saturation and hue",
                  "0 of pictures of one channel",
                  std::max(changes.saturation, changes.hue));
}

PictureMove draw_move(const PictureChanges& changes, KeyedRandom& random) {
  PictureMove move;
  if (changes.rotation > 0) {
    move.degrees = random.uniform(-changes.rotation, changes.rotation);
  }
  if (changes.padding > 0) {
    move.down = offset_of(changes.padding, random);
    move.right = offset_of(changes.padding, random);
  }
  return move;
}

void move_picture(const PictureMove& move, const Pixels& pixels) {
  if (move.degrees != 0.0) {
    rotate(pixels, move.degrees);
  }
  if (move.down != 0 || move.right != 0) {
    push(pixels, move.down, move.right);
  }
}

void change_colours(const PictureChanges& changes, KeyedRandom& random, const Pixels& pixels) {
  if (changes.brightness > 0) {
    stretch(pixels, factor_of(changes.brightness, random), [](int64_t) { return 0.0F; });
  }
  if (changes.contrast > 0) {
    const float middle = mean_grey(pixels);
    stretch(pixels, factor_of(changes.contrast, random), [middle](int64_t) { return middle; });
  }
  if (changes.saturation > 0) {
    stretch(pixels, factor_of(changes.saturation, random), [&pixels](int64_t i) {
      return grey_of(pixels, i);
    });
  }
  if (changes.hue > 0) {
    turn_hues(pixels, random.uniform(-changes.hue, changes.hue));
  }
}

}  // namespace rondo
