#include "core/heap_without_holes.h"

#include <doctest/doctest.h>
#include <malloc.h>

#include <cstdlib>
#include <memory>
#include <optional>

#include "support/launched_heap.h"

TEST_SUITE_BEGIN("core/heap_without_holes");

using rondo::HeapWithoutHoles;

namespace {

constexpr size_t kLarge = 1 << 20;

/// Whether a large block lies outside of the heap now, which keeps no room for it at its end.
bool lies_outside() {
  ::malloc_trim(0);
  const size_t before = ::mallinfo2().hblks;
  const std::unique_ptr<void, decltype(&std::free)> block(std::malloc(kLarge), std::free);
  return ::mallinfo2().hblks > before;
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

TEST_SUITE_END();
