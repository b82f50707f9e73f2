#pragma once

#include <cstdint>
#include <vector>

namespace rondo {

/// A stream of numbers that is a pure function of its key, for data generation, shuffling and
/// augmentation: never the global generator. Source: Steele et al. 2014, SplitMix64.
class KeyedRandom {
 public:
  /// Streams of different (seed, a, b) are independent of each other.
  explicit KeyedRandom(uint64_t seed, uint64_t a = 0, uint64_t b = 0);

  uint64_t next();

  /// In [0, 1), with 53 random bits.
  double uniform();

  double uniform(double least, double most) { return least + (most - least) * uniform(); }

  /// Standard normal. Source: Box and Muller 1958.
  double normal();

  /// In [0, bound), without bias; `bound` > 0. Source: Lemire 2019, arXiv:1805.10941.
  uint64_t below(uint64_t bound);

 private:
  uint64_t state_;
};

/// The order of `size` elements in pass `epoch`: a permutation of 0 … size-1.
std::vector<int64_t> permutation(int64_t size, uint64_t seed, int64_t epoch);

}  // namespace rondo
