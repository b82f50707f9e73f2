#pragma once

#include <c10/core/ScalarType.h>

namespace rondo {

/// Operations per second of the fastest of a few products of square matrices, with LibTorch's
/// current thread count. A multiplication and an addition are two operations. Takes some tenths of
/// a second.
double peak_flops_per_sec(c10::ScalarType type);

/// Bytes read and written per second by the fastest of a few copies of memory that no cache holds.
double peak_bytes_per_sec();

}  // namespace rondo
