#include "data/images/decode.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "data/images/image_codecs.h"

namespace rondo {

namespace {

constexpr std::string_view kJpeg = "\xff\xd8\xff";
constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n";

bool begins_with(std::string_view bytes, std::string_view what) {
  return bytes.substr(0, what.size()) == what;
}

bool is_webp(std::string_view bytes) {
  constexpr size_t kKind = 8;  // behind "RIFF" and the size
  return begins_with(bytes, "RIFF") && bytes.size() > kKind &&
         begins_with(bytes.substr(kKind), "WEBP");
}

[[noreturn]] void fail_format(const std::string& name) {
  detail::fail_image(name, 0, "this is not a JPEG, PNG or WebP file");
}

}  // namespace

void detail::fail_image(const std::string& name, size_t offset, const std::string& message) {
  throw DataError(fmt::format("{}: offset {}: {}", name, offset, message));
}

void detail::require_size(const std::string& name, int64_t height, int64_t width) {
  if (height < 1 || width < 1 || height > kMostPixels / width) {
    fail_image(
        name, 0, fmt::format("{} x {} pixels; from 1 to {} are read", height, width, kMostPixels));
  }
}

void detail::require_bytes(const std::string& name,
                           const ImageSize& size,
                           int64_t least,
                           size_t found) {
  if (least > static_cast<int64_t>(found)) {
    fail_image(name,
               0,
               fmt::format("{} x {} pixels need at least {} bytes, the file has {}",
                           size.height,
                           size.width,
                           least,
                           found));
  }
}

ImageSize image_size(const std::string& name, std::string_view bytes) {
  if (begins_with(bytes, kPng)) {
    return detail::png_size(name, bytes);
  }
  if (is_webp(bytes)) {
    return detail::webp_size(name, bytes);
  }
  if (!begins_with(bytes, kJpeg)) {
    fail_format(name);
  }
  ImageSize size = detail::jpeg_size(name, bytes);
  if (detail::exif_orientation(bytes) >= 5) {  // on its side
    std::swap(size.height, size.width);
  }
  return size;
}

Image decode_image(const std::string& name,
                   std::string_view bytes,
                   int64_t channels,
                   int64_t shrink) {
  if (begins_with(bytes, kPng)) {
    return detail::decode_png(name, bytes, channels);
  }
  if (is_webp(bytes)) {
    return detail::decode_webp(name, bytes, channels);
  }
  if (!begins_with(bytes, kJpeg)) {
    fail_format(name);
  }
  return detail::oriented(detail::decode_jpeg(name, bytes, channels, shrink),
                          detail::exif_orientation(bytes));
}

Image decode_mask(const std::string& name, std::string_view bytes) {
  if (!begins_with(bytes, kPng)) {
    detail::fail_image(name, 0, "this is not a PNG file, as masks are");
  }
  return detail::decode_png_numbers(name, bytes);
}

}  // namespace rondo
