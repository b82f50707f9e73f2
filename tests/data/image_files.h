#pragma once

#include <string>

#include "data/images/image.h"

namespace rondo::test {

/// The bytes of a JPEG file. \param orientation  of EXIF; 0: none is written
std::string jpeg_bytes(const Image& image, int orientation = 0);

/// How a JPEG file for print says what its numbers are.
enum class Inks { Plain, Adobe, AdobeYcck };

/// The bytes of a JPEG file with these four channels: cyan, magenta, yellow and black as they are
/// stored, which is inverted in Adobe's files.
std::string jpeg_bytes_of_inks(const Image& image, Inks kind);

/// The bytes of a PNG file, of 8 or 16 bits as the picture has them.
/// \param has_alpha  the picture has 2 or 4 channels, the last of them its opacity
std::string png_bytes(const Image& image, bool has_alpha = false);

/// The bytes of a PNG file with a palette of bright colours; `numbers` are those of its pixels.
/// \param bits  of a number: 1, 2, 4 or 8
std::string png_bytes_of_palette(const Image& numbers, int bits);

/// A picture whose values rise from the top left to the bottom right, other ones in each channel.
Image ramp(int64_t height, int64_t width, int64_t channels);

}  // namespace rondo::test
