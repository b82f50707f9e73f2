#include "tracing/program/image.h"

#include <algorithm>

namespace rondo {

ImageSizes image_sizes(const Slot& image) {
  const int64_t in_one = std::max<int64_t>(block_of(image), 1);
  return {image.sizes[0], image.sizes[1] * in_one, image.sizes[2], image.sizes[3]};
}

int64_t block_of(const Slot& image) {
  return image.sizes.size() == 5 ? image.sizes[4] : 0;
}

}  // namespace rondo
