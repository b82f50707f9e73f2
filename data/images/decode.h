#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/images/image.h"

namespace rondo {

/// As a viewer shows it: after the turn that EXIF asks for.
struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
};

/// The size of a JPEG, PNG or WebP file, from its header.
/// \param name  of the file, for messages
///
/// \throws DataError  naming the file: of another format, damaged, larger than 2^28 pixels, or
///                    larger than so few bytes can hold
ImageSize image_size(const std::string& name, std::string_view bytes);

/// Decodes a JPEG, PNG or WebP file, the latter where rondo was built with it. Memory is bounded by
/// the size in its header. Transparency is left out. A PNG of 16 bits a channel keeps them.
///
/// \param name      of the file, for messages
/// \param channels  1 or 3: what grey or coloured files are made to
/// \param shrink    1, 2, 4 or 8: a JPEG may be decoded to this part of its height and width,
///                  which takes much less time; others are not
/// \throws DataError  as `image_size`, and for damaged or missing pixels, with the offset where the
///                    library had come to
Image decode_image(const std::string& name,
                   std::string_view bytes,
                   int64_t channels,
                   int64_t shrink = 1);

/// Decodes a PNG file that gives each pixel a number: of a colour in its palette, or a grey as it
/// is stored, of 1 to 16 bits. The result has one channel.
///
/// \throws DataError  as `decode_image`, and for a file that is no PNG or has colours
Image decode_mask(const std::string& name, std::string_view bytes);

}  // namespace rondo
