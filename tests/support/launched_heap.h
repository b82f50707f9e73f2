#pragma once

namespace rondo::test {

/// Gives this process the heap that the launcher gives `rondo`.
/// \return false, and says so, when a sanitizer has a heap of its own
bool has_launched_heap();

}  // namespace rondo::test
