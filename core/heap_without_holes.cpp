#include "core/heap_without_holes.h"

#include <malloc.h>

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

}  // namespace

HeapWithoutHoles::HeapWithoutHoles() {
  if (scopes++ == 0 && fixed_threshold() > kLarge) {
    ::mallopt(M_MMAP_THRESHOLD, kLarge);
  }
}

HeapWithoutHoles::~HeapWithoutHoles() {
  if (--scopes == 0 && fixed_threshold() > kLarge) {
    ::mallopt(M_MMAP_THRESHOLD, fixed_threshold());
  }
}

}  // namespace rondo
