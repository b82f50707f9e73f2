#include <webp/decode.h>

#include <cmath>

#include "data/images/image_codecs.h"

namespace rondo::detail {

namespace {

const uint8_t* begin_of(std::string_view bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}

/// Source: ITU-R BT.709, whose weights libpng has too.
uint8_t grey(const uint8_t* pixel) {
  return static_cast<uint8_t>(
      std::lround(0.2126 * pixel[0] + 0.7152 * pixel[1] + 0.0722 * pixel[2]));
}

/// A lossy file has at least three bits for the modes of a block of 16 x 16 pixels. A lossless one
/// of a single colour has none for its pixels. Source: RFC 6386, 11.2.
int64_t least_bytes(const WebPBitstreamFeatures& features) {
  constexpr int kLossy = 1;
  const int64_t blocks = int64_t{(features.height + 15) / 16} * ((features.width + 15) / 16);
  return features.format == kLossy ? blocks * 3 / 8 : 0;
}

}  // namespace

ImageSize webp_size(const std::string& name, std::string_view bytes) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(begin_of(bytes), bytes.size(), &features) != VP8_STATUS_OK ||
      features.has_animation != 0) {
    fail_image(name, 0, "the WebP header is damaged, or the file is an animation");
  }
  const ImageSize size{features.height, features.width};
  require_size(name, size.height, size.width);
  require_bytes(name, size, least_bytes(features), bytes.size());
  return size;
}

Image decode_webp(const std::string& name, std::string_view bytes, int64_t channels) {
  const ImageSize size = webp_size(name, bytes);
  Image image{size.height, size.width, 3, false, {}};
  image.bytes.resize(static_cast<size_t>(size.height * size.width * 3));
  const auto* const decoded = WebPDecodeRGBInto(begin_of(bytes),
                                                bytes.size(),
                                                image.bytes.data(),
                                                image.bytes.size(),
                                                static_cast<int>(size.width * 3));
  if (decoded == nullptr) {
    fail_image(name, bytes.size(), "the WebP pixels are damaged or missing");
  }
  if (channels == 1) {
    const auto pixels = static_cast<size_t>(size.height * size.width);
    for (size_t i = 0; i < pixels; ++i) {
      image.bytes[i] = grey(image.bytes.data() + 3 * i);
    }
    image.bytes.resize(pixels);
    image.channels = 1;
  }
  return image;
}

}  // namespace rondo::detail
