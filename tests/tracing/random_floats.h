#pragma once

#include <algorithm>
#include <random>
#include <vector>

namespace rondo::test {

/// Normally distributed, the same for the same seed.
inline std::vector<float> random_floats(int count, unsigned seed) {
  std::minstd_rand engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  std::generate(values.begin(), values.end(), [&] { return normal(engine); });
  return values;
}

}  // namespace rondo::test
