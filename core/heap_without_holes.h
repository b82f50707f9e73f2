#pragma once

namespace rondo {

/// While one lives, glibc's heap does not grow for blocks of 128 KiB and more. Those that it has no
/// room for lie outside of it, and go back to the system when they are freed: work that allocates
/// much at once, and then no more, leaves no holes in the heap. Not so unless the environment fixes
/// from which size on blocks lie outside (`MALLOC_MMAP_THRESHOLD_`, as the launcher does): glibc
/// moves that size by itself otherwise, and no longer would. Scopes may nest; all threads share the
/// heap.
///
/// When the last one ends, the heap is also made ready for libraries that allocate and free a large
/// aligned block in each step, as oneDNN's products do: on the thread that ends it they take the
/// same place again and again.
class HeapWithoutHoles {
 public:
  HeapWithoutHoles();
  ~HeapWithoutHoles();
  HeapWithoutHoles(const HeapWithoutHoles&) = delete;
  HeapWithoutHoles& operator=(const HeapWithoutHoles&) = delete;
};

}  // namespace rondo
