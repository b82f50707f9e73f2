#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rondo {

/// "512MB", "2GiB" or "1000000" in bytes; nothing unless it is a number above zero, below 2^63
/// bytes, with a known unit.
std::optional<int64_t> bytes_named(const std::string& text);

}  // namespace rondo
