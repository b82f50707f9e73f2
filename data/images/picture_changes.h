#pragma once

#include <cstdint>
#include <string>

#include "core/random.h"

namespace rondo {

/// What chance changes of a picture, in this order; nothing by default.
struct PictureChanges {
  double rotation = 0.0;  ///< it is turned about its middle by up to so many degrees, in [0, 180]
  int64_t padding = 0;    ///< it is moved by up to so many pixels along each side, >= 0
  /// Its values are multiplied by 1 ± up to so much, in [0, 1].
  double brightness = 0.0;
  double contrast = 0.0;    ///< likewise the differences from its mean grey
  double saturation = 0.0;  ///< likewise those of a pixel from its grey; of colours alone
  double hue =
      0.0;  ///< its hues are turned by up to so much of the circle, in [0, 0.5]; of colours
};

/// \param owner  for messages: "ImageFolder"
/// \throws UsageError  for a number that is out of range, and changes of colours of grey pictures
void check_changes(const std::string& owner, const PictureChanges& changes, int64_t channels);

/// The pixels of a picture.
struct Pixels {
  float* values = nullptr;  ///< in [0, 1]: [channels, height, width]
  int64_t channels = 0;     ///< 1 or 3
  int64_t height = 0;
  int64_t width = 0;
};

/// Where a picture is moved to: it is turned about its middle, then pushed.
struct PictureMove {
  double degrees = 0.0;
  int64_t down = 0;   ///< pixels
  int64_t right = 0;  ///< pixels

  bool is_none() const { return degrees == 0.0 && down == 0 && right == 0; }
};

/// Draws only for changes that are not 0.
PictureMove draw_move(const PictureChanges& changes, KeyedRandom& random);

/// Black comes in at the edges.
void move_picture(const PictureMove& move, const Pixels& pixels);

/// Draws only for changes that are not 0. Values stay in [0, 1].
void change_colours(const PictureChanges& changes, KeyedRandom& random, const Pixels& pixels);

}  // namespace rondo
