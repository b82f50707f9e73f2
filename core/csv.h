#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rondo {

/// A field of a comma-separated line, quoted where it must be. Source: RFC 4180.
std::string csv_field(const std::string& text);

/// Rows of fields; lines without anything are none.
std::vector<std::vector<std::string>> csv_rows(std::string_view text);

}  // namespace rondo
