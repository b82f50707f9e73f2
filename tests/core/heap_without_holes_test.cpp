#include "core/heap_without_holes.h"

#include <doctest/doctest.h>
#include <malloc.h>

#include <cstdlib>
#include <optional>
#include <vector>

#include "support/launched_heap.h"

TEST_SUITE_BEGIN("core/heap_without_holes");

using rondo::HeapWithoutHoles;
using rondo::test::HeapBlock;

namespace {

constexpr size_t kLarge = 1 << 20;

/// Whether a large block lies outside of the heap now, which keeps no room for it at its end.
bool lies_outside() {
  ::malloc_trim(0);
  const size_t before = ::mallinfo2().hblks;
  const HeapBlock block(std::malloc(kLarge));
  return ::mallinfo2().hblks > before;
}

/// What a thread's cache of small blocks has, and more: it is empty while they are kept.
std::vector<HeapBlock> all_small_blocks() {
  std::vector<HeapBlock> blocks;
  for (size_t bytes = 24; bytes <= 1032; bytes += 16) {
    for (int i = 0; i < 20; ++i) {
      blocks.emplace_back(std::malloc(bytes));
    }
  }
  return blocks;
}

/// By how much the heap grows when so many aligned blocks are taken, one after the other.
size_t growth_for_aligned_blocks(int count) {
  const size_t before = ::mallinfo2().arena;
  for (int i = 0; i < count; ++i) {
    void* block = nullptr;
    REQUIRE(::posix_memalign(&block, 128, kLarge) == 0);
    const HeapBlock lent(block);
  }
  return ::mallinfo2().arena - before;
}

}  // namespace

TEST_CASE("large blocks lie outside of the heap within scopes, where a threshold is fixed") {
  if (!rondo::test::has_launched_heap()) {
    return;
  }
  CHECK_FALSE(lies_outside());
  {
    std::optional<HeapWithoutHoles> first(std::in_place);
    std::optional<HeapWithoutHoles> second(std::in_place);
    CHECK(lies_outside());
    first.reset();
    CHECK(lies_outside());
    second.reset();
    CHECK_FALSE(lies_outside());
  }
  for (const char* none : {"", "much", "65536"}) {
    REQUIRE(::setenv("MALLOC_MMAP_THRESHOLD_", none, 1) == 0);
    const HeapWithoutHoles scope;
    CHECK_FALSE(lies_outside());
  }
  REQUIRE(::unsetenv("MALLOC_MMAP_THRESHOLD_") == 0);
  const HeapWithoutHoles scope;
  CHECK_FALSE(lies_outside());
}

TEST_CASE("behind a scope aligned blocks lie in one place, one after the other") {
  if (!rondo::test::has_launched_heap()) {
    return;
  }
  const std::vector<HeapBlock> kept = all_small_blocks();
  { const HeapWithoutHoles scope; }
  CHECK(growth_for_aligned_blocks(60) < 3 * kLarge);
}

TEST_SUITE_END();
