#pragma once

#include <cstdint>
#include <optional>

namespace rondo {

/// Bytes of this process that are in memory; nothing where the system does not tell.
std::optional<int64_t> resident_bytes();

/// The most that ever were.
std::optional<int64_t> peak_resident_bytes();

}  // namespace rondo
