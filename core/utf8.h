#pragma once

#include <cstddef>
#include <string_view>

namespace rondo {

/// Bytes of the well-formed character that `text`, which is not empty, begins with; 0 when it is
/// none. Source: Unicode 15, table 3-7.
size_t utf8_length(std::string_view text);

/// Whether all characters are well-formed.
bool is_utf8(std::string_view text);

/// Without the mark that some programs write before UTF-8.
std::string_view without_byte_order_mark(std::string_view text);

}  // namespace rondo
