#pragma once

#include <cstddef>

namespace rondo::detail {

/// Copies by stores that leave the caches to whoever computes. \param to  aligned to 16 bytes
void stream_copy(char* to, const char* from, size_t bytes);

}  // namespace rondo::detail
