#pragma once

#include <cstdint>

namespace rondo::detail {

/// Multiplies `count` elements by a number, with all of the format's exponents: scaled gradients
/// stay visible.
template <class T>
void scale_loop(T by, T* elements, int64_t count);

}  // namespace rondo::detail
