#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

#include "core/heap_without_holes.h"
#include "support/launched_heap.h"
#include "trainer/rehearsal.h"
#include "trainer/run_memory.h"

namespace rondo::test {

/// A rehearsal of all steps that is not the first: libraries keep memory from their first use on.
/// Its data sets lie outside of the heap. There they would leave holes of their size behind, which
/// captures of the test cases that follow lie in, at times: a user's process has one run, and no
/// such holes. So a case that measures nothing rehearses by this as well.
inline Rehearsal rehearse_again(const RunConfig& run) {
  {
    const HeapWithoutHoles heap;
    run.fit->train.source();
    for (const DataLoader& loader : run.fit->val) {
      loader.source();
    }
  }
  rehearse_all_steps(run);
  return rehearse_all_steps(run);
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
