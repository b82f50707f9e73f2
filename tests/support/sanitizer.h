#pragma once

namespace rondo::test {

/// Whether a sanitizer has the heap: it keeps what is freed.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kHasHeapOfSanitizer = true;
#else
inline constexpr bool kHasHeapOfSanitizer = false;
#endif

}  // namespace rondo::test
