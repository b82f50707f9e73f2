#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rondo::test {

inline std::vector<int64_t> sorted(std::vector<int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace rondo::test
