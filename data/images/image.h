#pragma once

#include <cstdint>
#include <vector>

namespace rondo {

/// A picture in memory: rows from the top, pixels from the left, the channels of a pixel side by
/// side.
struct Image {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;  ///< 1: grey; 3: red, green, blue
  bool is_wide = false;  ///< a value is a uint16_t of this machine, and not a byte
  std::vector<uint8_t> bytes;

  /// The value of white.
  double most() const { return is_wide ? 65535.0 : 255.0; }
};

/// The part of a picture that is taken, in shares of its height and width.
struct ImageBox {
  double top = 0.0;
  double left = 0.0;
  double height = 1.0;
  double width = 1.0;
};

}  // namespace rondo
