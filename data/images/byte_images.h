#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor_map.h"

namespace rondo {

/// What a byte of a pixel becomes: (byte / 255 - mean) / std.
using PixelValues = std::array<float, 256>;

PixelValues pixel_values(double mean, double std);

/// Labelled images kept as the bytes of their file, a quarter of the memory of float32.
struct ByteImages {
  std::vector<int64_t> shape;       // of one image: [channels, height, width]
  std::vector<PixelValues> values;  // one for each channel
  std::vector<uint8_t> pixels;      // image after image
  std::vector<uint8_t> labels;

  int64_t size() const { return static_cast<int64_t>(labels.size()); }

  /// "image" float32 [B, channels, height, width], "label" int64 [B].
  Batch gather(const std::vector<int64_t>& indices) const;
};

}  // namespace rondo
