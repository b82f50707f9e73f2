#pragma once

#include <string>
#include <string_view>

namespace rondo {

/// Source: RFC 4648, section 4.
std::string base64(std::string_view bytes);

/// The bytes that a text in base64 stands for. \throws DataError  for another text
std::string from_base64(std::string_view text);

}  // namespace rondo
