#include "loggers/media_bytes.h"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cstdint>

#include "core/error.h"

namespace rondo {

std::string png_of(const Picture& picture) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = picture.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  const void* const pixels = picture.pixels.data();
  std::string bytes;
  if (png_image_write_to_memory(&image, nullptr, &size, 0, pixels, 0, nullptr) != 0) {
    bytes.resize(size);
    if (png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels, 0, nullptr) != 0) {
      bytes.resize(size);
      return bytes;
    }
  }
  throw DataError(fmt::format("a picture of {} x {} pixels cannot be written as PNG: {}",
                              picture.height,
                              picture.width,
                              image.message));
}

std::string content_name(std::string_view bytes) {
  // FNV-1a from two beginnings. Source: Fowler, Noll, Vo.
  uint64_t a = 0xcbf29ce484222325ULL;
  uint64_t b = 0x9e3779b97f4a7c15ULL;
  for (const char c : bytes) {
    a = (a ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    b = (b ^ static_cast<unsigned char>(c) ^ (b >> 29)) * 0x100000001b3ULL;
  }
  return fmt::format("{:016x}{:016x}", a, b);
}

}  // namespace rondo
