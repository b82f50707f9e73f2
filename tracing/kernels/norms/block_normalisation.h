#pragma once

#include "core/parallel.h"
#include "tracing/kernels/lanes.h"
#include "tracing/kernels/norms/batch_statistics.h"

namespace rondo {

/// The normalisations of channels that lie side by side in a block, one a lane.
/// \tparam kBundles  vectors that a block takes
template <int64_t kBundles>
struct BlockNormalisation {
  static constexpr int64_t kBlock = kBundles * kLanes;

  Lanes scales[kBundles];
  Lanes shifts[kBundles];
  bool is_finite = true;  ///< those of all channels are

  /// \param plane  a block of one example: planes are counted through the batch
  RONDO_AVX2 BlockNormalisation(const BatchNormOperands& norm, int64_t plane) {
    const int64_t first = plane % (norm.shape.channels / kBlock) * kBlock;
    for (int64_t i = 0; i < kBlock; ++i) {
      const Normalisation n = norm.normalisation(first + i);
      scales[i / kLanes][i % kLanes] = n.scale;
      shifts[i / kLanes][i % kLanes] = n.shift;
      is_finite = is_finite && n.is_finite();
    }
  }
};

/// Collects the statistics of images in blocks, then calls `treat(plane)` for each block of each
/// example, several at a time.
template <int64_t kBundles, class Treat>
void normalise_blocks(const BatchNormOperands& norm, Treat treat) {
  constexpr int64_t kBlock = kBundles * kLanes;
  collect_in_blocks(norm.statistics(), kBlock);
  parallel_for_each(norm.shape.planes() / kBlock, norm.shape.image * kBlock, treat);
}

}  // namespace rondo
