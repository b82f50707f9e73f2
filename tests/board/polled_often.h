#pragma once

#include <chrono>
#include <filesystem>

#include "board/run_index.h"

namespace rondo::test {

/// Options of an index that looks for changes every 5 ms: a test does not wait for it.
inline RunIndexOptions polled_often(const std::filesystem::path& root) {
  RunIndexOptions options;
  options.root = root;
  options.poll = std::chrono::milliseconds(5);
  return options;
}

}  // namespace rondo::test
