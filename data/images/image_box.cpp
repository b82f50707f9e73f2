#include "data/images/image_box.h"

#include <algorithm>
#include <cmath>

namespace rondo {

ImageBox center_box(int64_t image_height, int64_t image_width, int64_t height, int64_t width) {
  const double scale = std::min(static_cast<double>(image_height) / static_cast<double>(height),
                                static_cast<double>(image_width) / static_cast<double>(width));
  ImageBox box;
  box.height = scale * static_cast<double>(height) / static_cast<double>(image_height);
  box.width = scale * static_cast<double>(width) / static_cast<double>(image_width);
  box.top = (1.0 - box.height) / 2;
  box.left = (1.0 - box.width) / 2;
  return box;
}

ImageBox random_box(const ImageSize& size, double min_area, KeyedRandom& random) {
  constexpr double kMostStretched = 4.0 / 3.0;
  constexpr int kTries = 10;
  const double whole = static_cast<double>(size.height) * static_cast<double>(size.width);
  for (int i = 0; i < kTries; ++i) {
    const double area = random.uniform(min_area, 1.0) * whole;
    const double ratio =
        std::exp(random.uniform(-std::log(kMostStretched), std::log(kMostStretched)));
    const double height = std::sqrt(area / ratio) / static_cast<double>(size.height);
    const double width = std::sqrt(area * ratio) / static_cast<double>(size.width);
    if (height <= 1.0 && width <= 1.0) {
      return {random.uniform(0.0, 1.0 - height), random.uniform(0.0, 1.0 - width), height, width};
    }
  }
  return center_box(size.height, size.width, 1, 1);
}

int64_t shrink_for(const ImageSize& size, const ImageBox& box, int64_t height, int64_t width) {
  const double high = box.height * static_cast<double>(size.height) / static_cast<double>(height);
  const double wide = box.width * static_cast<double>(size.width) / static_cast<double>(width);
  int64_t shrink = 1;
  while (shrink < 8 && std::min(high, wide) >= static_cast<double>(shrink * 2)) {
    shrink *= 2;
  }
  return shrink;
}

}  // namespace rondo
