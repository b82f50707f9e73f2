#pragma once

#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdint>

#include "support/sanitizer.h"
#include "trainer/rehearsal.h"
#include "trainer/run_memory.h"

namespace rondo::test {

/// What is freed goes back to the system at once, so that holes in the heap do not count. Not so
/// under a sanitizer, which keeps what is freed.
inline bool gives_memory_back() {
  if (kHasHeapOfSanitizer) {
    MESSAGE("skipped: the sanitizer keeps what is freed");
    return false;
  }
  REQUIRE(::mallopt(M_MMAP_THRESHOLD, 128 * 1024) == 1);
  return true;
}

inline void check_near(int64_t grown_by, const RunMemory& memory, int64_t unpredicted = 0) {
  CAPTURE(grown_by);
  CAPTURE(memory.peak);
  const auto tolerance = std::max<int64_t>(4 << 20, grown_by / 50);
  CHECK(grown_by >= memory.peak - tolerance);
  CHECK(grown_by <= memory.peak + tolerance + unpredicted);
}

inline void check_peak(const Rehearsal& rehearsal, RunConfig run, int64_t unpredicted = 0) {
  run.fit->train = rehearsal.train;
  run.fit->val = rehearsal.val;
  check_near(rehearsal.grown_by, memory_of(rehearsal.steps, run), unpredicted);
}

}  // namespace rondo::test
