#pragma once

#include <algorithm>
#include <cstdint>

namespace rondo {

/// The virtual ranks of a run, and which of them a process works for.
struct RankRange {
  int64_t all = 1;    ///< a power of two; 1: none
  int64_t first = 0;  ///< of those of the process
  int64_t own = 1;    ///< how many it works for: neighbours, a power of two

  bool has(int64_t rank) const { return rank >= first && rank < first + own; }
};

/// Where the part of a virtual rank begins in a batch; with `rank` = `ranks`, where the batch ends.
/// Sizes of parts differ by one at most; the longer ones come first.
inline int64_t begin_of_part(int64_t samples, int64_t rank, int64_t ranks) {
  return samples / ranks * rank + std::min(rank, samples % ranks);
}

}  // namespace rondo
