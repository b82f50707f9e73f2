#pragma once

#include <cstddef>

namespace rondo::detail {

/// Copies by stores that leave the caches to whoever computes.
void stream_copy(char* to, const char* from, size_t bytes);

}  // namespace rondo::detail
