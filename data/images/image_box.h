#pragma once

#include <cstdint>

#include "core/random.h"
#include "data/images/decode.h"
#include "data/images/image.h"

namespace rondo {

/// The largest part of a picture of this size that has the shape of the result, from its middle.
ImageBox center_box(int64_t image_height, int64_t image_width, int64_t height, int64_t width);

/// A part of random size, shape and place; the middle one when ten tries do not fit.
/// Source: torchvision's RandomResizedCrop, after Szegedy et al. 2014 (arXiv:1409.4842).
ImageBox random_box(const ImageSize& size, double min_area, KeyedRandom& random);

/// How much smaller a JPEG may be decoded, 1, 2, 4 or 8: what is taken of it still has the pixels
/// of the result.
int64_t shrink_for(const ImageSize& size, const ImageBox& box, int64_t height, int64_t width);

}  // namespace rondo
