#pragma once

#include <cstddef>
#include <functional>

namespace rondo {

/// Calls `work(i)` for each i below `count`, on as many threads as there are cores. Which comes
/// first is open. The first exception is thrown once all have ended.
void each_in_parallel(size_t count, const std::function<void(size_t)>& work);

}  // namespace rondo
