#pragma once

#include <algorithm>
#include <cstdlib>

namespace rondo::test {

/// How often a campaign of random cases repeats its default number of them, from the environment
/// variable RONDO_TEST_SCALE; 1 when that is not set.
inline int campaign_scale() {
  const char* scale = std::getenv("RONDO_TEST_SCALE");
  return scale == nullptr ? 1 : std::max(1, std::atoi(scale));
}

}  // namespace rondo::test
