#pragma once

#include <cstdint>
#include <optional>

namespace rondo {

struct AutorestartOptions {
  /// Starts in a row that may fail without a step forward, >= 0; absent or 0: not watched.
  std::optional<int64_t> max_num_restarts = {};
};

}  // namespace rondo
