#pragma once

#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "core/heap_without_holes.h"
#include "support/launched_heap.h"
#include "trainer/rehearsal.h"
#include "trainer/run_memory.h"

namespace rondo::test {

/// While it lives, what was free in the heap for large blocks is not: what is measured finds no
/// holes of the runs before it. A user's process has one run.
class FilledHeap {
 public:
  FilledHeap() {
    constexpr size_t kLarge = 128 * 1024;  // bytes
    const HeapWithoutHoles scope;
    ::malloc_trim(0);  // the end of the heap is no hole
    while (true) {
      const size_t outside = ::mallinfo2().hblks;
      HeapBlock block(std::malloc(kLarge));
      if (::mallinfo2().hblks > outside) {
        break;
      }
      blocks_.push_back(std::move(block));
    }
  }

 private:
  std::vector<HeapBlock> blocks_;
};

/// A rehearsal of all steps that is not the first: libraries keep memory from their first use on.
inline Rehearsal rehearse_again(const RunConfig& run) {
  rehearse_all_steps(run);
  const FilledHeap heap;
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
