#pragma once

namespace rondo {

/// While one lives, glibc's heap does not grow for blocks of 128 KiB and more. Those that it has no
/// room for lie outside of it, and go back to the system when they are freed: work that allocates
/// much at once, and then no more, leaves no holes in the heap. Does nothing unless the environment
/// fixes from which size on blocks lie so (`MALLOC_MMAP_THRESHOLD_`, as the launcher does): glibc
/// moves that size by itself otherwise, and no longer would. Scopes may nest; all threads share the
/// heap.
class HeapWithoutHoles {
 public:
  HeapWithoutHoles();
  ~HeapWithoutHoles();
  HeapWithoutHoles(const HeapWithoutHoles&) = delete;
  HeapWithoutHoles& operator=(const HeapWithoutHoles&) = delete;
};

}  // namespace rondo
