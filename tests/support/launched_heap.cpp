#include "support/launched_heap.h"

#include <doctest/doctest.h>
#include <malloc.h>

#include <cstdlib>
#include <string>

#include "support/sanitizer.h"

namespace rondo::test {

bool has_launched_heap() {
  if (kHasHeapOfSanitizer) {
    MESSAGE("skipped: the sanitizer has a heap of its own");
    return false;
  }
  constexpr int kMapped = 64 << 20;
  REQUIRE(::setenv("MALLOC_MMAP_THRESHOLD_", std::to_string(kMapped).c_str(), 1) == 0);
  REQUIRE(::mallopt(M_MMAP_THRESHOLD, kMapped) == 1);
  REQUIRE(::mallopt(M_TRIM_THRESHOLD, 256 << 20) == 1);
  return true;
}

}  // namespace rondo::test
