#pragma once

#include <string>
#include <string_view>

#include "core/media.h"

namespace rondo {

/// A picture as the bytes of a PNG file.
/// \throws DataError  when it cannot be encoded
std::string png_of(const Picture& picture);

/// 32 hexadecimal digits that follow from the bytes: a name for a file of this content.
std::string content_name(std::string_view bytes);

}  // namespace rondo
