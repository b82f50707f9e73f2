#pragma once

#include <cstddef>

namespace rondo::detail {

constexpr size_t kStreamAlignment = 16;

/// Copies by stores that leave the caches to whoever computes. \param to  aligned to
/// kStreamAlignment
void stream_copy(char* to, const char* from, size_t bytes);

}  // namespace rondo::detail
