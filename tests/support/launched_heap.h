#pragma once

#include <cstdlib>
#include <memory>

namespace rondo::test {

/// Gives this process the heap that the launcher gives `rondo`.
/// \return false, and says so, when a sanitizer has a heap of its own
bool has_launched_heap();

struct FreeBlock {
  void operator()(void* block) const { std::free(block); }
};

/// A block of malloc's.
using HeapBlock = std::unique_ptr<void, FreeBlock>;

}  // namespace rondo::test
