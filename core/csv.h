#pragma once

#include <string>

namespace rondo {

/// A field of a comma-separated line, quoted where it must be. Source: RFC 4180.
std::string csv_field(const std::string& text);

}  // namespace rondo
