#pragma once

#include <array>
#include <cstring>
#include <vector>

#include "core/parallel.h"
#include "tracing/kernels/kernel.h"
#include "tracing/kernels/lanes.h"
#include "tracing/kernels/norms/batch_norm_gradient.h"

namespace rondo {

// The gradient of a batch norm of images whose channels lie side by side in blocks. LibTorch adds
// the elements of a plane in eight lanes, by their place in it (batch_norm_gradient.h); here they
// are eight sums, and the lanes are channels.

/// \tparam Source    where dy comes from: `rows()` and `width()` of a plane;
///                   `each_element(plane, y, treat)` calls `treat(i, bundle, dy)` with the elements
///                   of a row, in order. It is asked twice for each.
/// \tparam kBundles  vectors that a block takes
template <class Source, ProductSum kSum, int64_t kBundles>
class BatchNormGradientBlocksKernel final : public Kernel {
 public:
  BatchNormGradientBlocksKernel(const BatchNormGradientOperands& tensors,
                                const ImageShape& shape,
                                const Source& source)
      : t_(tensors),
        shape_(shape),
        source_(source),
        sums_(static_cast<size_t>(shape.planes() / kBlock)),
        slopes_(static_cast<size_t>(shape.channels)) {}

  void run() override {
    each_plane([this](int64_t plane) { add_plane(plane); });
    for (int64_t channel = 0; channel < shape_.channels; ++channel) {
      slopes_[static_cast<size_t>(channel)] = finish_channel(channel);
    }
    each_plane([this](int64_t plane) { compute_plane(plane); });
  }

  int64_t bytes() const override {
    return static_cast<int64_t>(sums_.size() * sizeof(sums_[0]) +
                                slopes_.size() * sizeof(slopes_[0]));
  }

 private:
  static constexpr int64_t kBlock = kBundles * kLanes;

  using Bundles = std::array<Lanes, kBundles>;

  /// What LibTorch adds up of one plane, of each channel of a block.
  struct PlaneSums {
    float gradients[kBlock];
    float products[kBlock];
  };

  int64_t blocks() const { return shape_.channels / kBlock; }

  template <class Treat>
  void each_plane(Treat treat) const {
    parallel_for_each(shape_.batch * blocks(), shape_.image * kBlock, treat);
  }

  RONDO_AVX2 void add_plane(int64_t plane) {
    const float* const mean = t_.mean.as<float>() + plane % blocks() * kBlock;
    Bundles means;
    Bundles gradients[kLanes] = {};
    Bundles products[kLanes] = {};
    for (int64_t b = 0; b < kBundles; ++b) {
      means[static_cast<size_t>(b)] = load(mean + b * kLanes);
    }
    const float* const x = t_.x.as<float>() + plane * shape_.image * kBlock;
    for (int64_t y = 0; y < source_.rows(); ++y) {
      const int64_t first = y * source_.width();
      source_.each_element(
          plane, y, [&](int64_t i, int64_t b, Lanes gradient) RONDO_AVX2 RONDO_INLINE_LAMBDA {
            const auto bundle = static_cast<size_t>(b);
            const auto place = static_cast<uint64_t>(first + i) % kLanes;
            const Lanes distance = load(x + (first + i) * kBlock + b * kLanes) - means[bundle];
            gradients[place][bundle] += gradient;
            products[place][bundle] =
                add_product<kSum>(distance, gradient, products[place][bundle]);
          });
    }
    PlaneSums& sums = sums_[static_cast<size_t>(plane)];
    add_up(gradients, sums.gradients);
    add_up(products, sums.products);
  }

  // Halves, quarters, neighbours, as `added_up` of the lanes of a vector.
  static RONDO_AVX2 RONDO_INLINE void add_up(Bundles* places, float* sums) {
    for (size_t b = 0; b < kBundles; ++b) {
      for (int64_t distance = kLanes / 2; distance > 0; distance /= 2) {
        for (int64_t i = 0; i < distance; ++i) {
          places[i][b] += places[i + distance][b];
        }
      }
      std::memcpy(sums + b * kLanes, &places[0][b], sizeof(Lanes));
    }
  }

  GradientSlope finish_channel(int64_t channel) {
    GradientSums sums;
    for (int64_t n = 0; n < shape_.batch; ++n) {
      const auto& plane = sums_[static_cast<size_t>(n * blocks() + channel / kBlock)];
      sums.gradient += static_cast<double>(plane.gradients[channel % kBlock]);
      sums.product += static_cast<double>(plane.products[channel % kBlock]);
    }
    return finish(t_.with(shape_, /*dy=*/nullptr), channel, sums);
  }

  RONDO_AVX2 void compute_plane(int64_t plane) const {
    GradientSlopes slopes[kBundles];
    for (int64_t i = 0; i < kBlock; ++i) {
      const auto channel = static_cast<size_t>(plane % blocks() * kBlock + i);
      slopes[i / kLanes].set(i % kLanes, slopes_[channel]);
    }
    const float* const x = t_.x.as<float>() + plane * shape_.image * kBlock;
    float* const dx = t_.dx.as<float>() + plane * shape_.image * kBlock;
    for (int64_t y = 0; y < source_.rows(); ++y) {
      const int64_t first = y * source_.width();
      source_.each_element(
          plane, y, [&](int64_t i, int64_t b, Lanes gradient) RONDO_AVX2 RONDO_INLINE_LAMBDA {
            const int64_t place = (first + i) * kBlock + b * kLanes;
            const Lanes slope = slopes[b](load(x + place), gradient);
            std::memcpy(dx + place, &slope, sizeof slope);
          });
    }
  }

  BatchNormGradientOperands t_;
  ImageShape shape_;
  Source source_;
  std::vector<PlaneSums> sums_;        // by example and block
  std::vector<GradientSlope> slopes_;  // by channel
};

}  // namespace rondo
