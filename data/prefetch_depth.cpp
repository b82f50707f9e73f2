#include "data/prefetch_depth.h"

#include <algorithm>

namespace rondo {

int64_t usual_prefetch_depth(int64_t batch_bytes) {
  constexpr int64_t kUsualDepth = 8;
  constexpr int64_t kMostSmallBatches = 64;
  constexpr int64_t kBytesOfSmallBatches = int64_t{1} << 20;
  return std::clamp(
      kBytesOfSmallBatches / std::max<int64_t>(batch_bytes, 1), kUsualDepth, kMostSmallBatches);
}

}  // namespace rondo
