#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/images/decode.h"

namespace rondo::detail {

/// More is refused before anything is allocated.
constexpr int64_t kMostPixels = int64_t{1} << 28;

/// \throws DataError  `name: offset N: message`
[[noreturn]] void fail_image(const std::string& name, size_t offset, const std::string& message);

/// \throws DataError  when it has no pixels or more than kMostPixels
void require_size(const std::string& name, int64_t height, int64_t width);

/// \param least  bytes that a file of this size has at least
/// \throws DataError  when it has less: its header claims pixels that it cannot have
void require_bytes(const std::string& name, const ImageSize& size, int64_t least, size_t found);

/// Sizes and pixels as they are stored: EXIF's turn is not made.
/// @{
ImageSize jpeg_size(const std::string& name, std::string_view bytes);
Image decode_jpeg(const std::string& name,
                  std::string_view bytes,
                  int64_t channels,
                  int64_t shrink);
ImageSize png_size(const std::string& name, std::string_view bytes);
Image decode_png(const std::string& name, std::string_view bytes, int64_t channels);
Image decode_png_numbers(const std::string& name, std::string_view bytes);
ImageSize webp_size(const std::string& name, std::string_view bytes);
Image decode_webp(const std::string& name, std::string_view bytes, int64_t channels);
/// @}

/// The orientation that EXIF data in a JPEG file gives, 1 … 8; 1 where there is none.
/// Source: CIPA DC-008 (Exif 2.32), 4.6.4 and 4.6.5.
int exif_orientation(std::string_view jpeg);

/// The picture as a viewer shows one of this orientation.
Image oriented(Image image, int orientation);

}  // namespace rondo::detail
