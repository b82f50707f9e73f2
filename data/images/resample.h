#pragma once

#include "data/images/image.h"

namespace rondo {

/// Scales a part of a picture to `height` x `width`, with a triangle as wide as what a pixel of the
/// result covers: bilinear where it grows, without aliasing where it shrinks, as Pillow's BILINEAR
/// and LibTorch's antialiased bilinear interpolation do.
/// \param to  float32, channel after channel, in [0, 1]: [channels, height, width]
void resample(const Image& image, const ImageBox& box, int64_t height, int64_t width, float* to);

}  // namespace rondo
