#include "core/heap_without_holes.h"

#include <malloc.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace rondo {

namespace {

constexpr int kLarge = 128 * 1024;  // bytes; glibc's own beginning

/// What the environment fixes; 0: nothing.
int fixed_threshold() {
  const char* const text = std::getenv("MALLOC_MMAP_THRESHOLD_");
  int bytes = 0;
  if (text != nullptr) {
    std::from_chars(text, text + std::strlen(text), bytes);
  }
  return bytes;
}

std::atomic<int> scopes{0};

// An aligned block is cut out of a larger one. What is left of that at both ends is small, and goes
// to the thread's cache, which keeps up to seven blocks of each size up to 1,032 bytes: there it
// still counts as used, parts the place from what is free beside it, and the next block of that
// size finds no room in it. 15 to 20 calls in a row took a new place each, 2.4 MB further on (glibc
// 2.36). A full cache has them joined with the place.
void fill_cache_of_small_blocks() {
  constexpr size_t kMostOfSize = 7;
  constexpr size_t kSmallest = 24;
  constexpr size_t kLargest = 1032;
  constexpr size_t kStep = 16;
  std::array<void* volatile, kMostOfSize> blocks;  // volatile: nobody uses them
  for (size_t bytes = kSmallest; bytes <= kLargest; bytes += kStep) {
    for (void* volatile& block : blocks) {
      block = std::malloc(bytes);
    }
    for (void* const block : blocks) {
      std::free(block);
    }
  }
}

}  // namespace

HeapWithoutHoles::HeapWithoutHoles() {
  if (scopes++ == 0 && fixed_threshold() > kLarge) {
    ::mallopt(M_MMAP_THRESHOLD, kLarge);
  }
}

HeapWithoutHoles::~HeapWithoutHoles() {
  if (--scopes > 0) {
    return;
  }
  if (fixed_threshold() > kLarge) {
    ::mallopt(M_MMAP_THRESHOLD, fixed_threshold());
  }
  fill_cache_of_small_blocks();
}

}  // namespace rondo
