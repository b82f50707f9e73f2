// Compiled with -ffp-contract=off (backends/CMakeLists.txt), see core/vector_loop.h.

#include <ATen/Parallel.h>

#include <array>
#include <vector>

#include "backends/plan/kernels/batch_norm_gradient.h"
#include "backends/plan/kernels/batch_norm_relu_pool.h"
#include "backends/plan/kernels/kernels.h"
#include "backends/program/arguments.h"

namespace rondo {

namespace {

// See batch_norm_relu_pool_backward.cpp: the same of images whose channels lie side by side in
// blocks. LibTorch adds the elements of a plane in eight lanes, by their place in it; here they are
// eight sums, and the lanes are channels. The gradient of the pooling is never written: both looks
// at it go from the windows.

/// Channels of a block, eight in each.
template <int64_t kBundles>
using Bundles = std::array<Lanes, kBundles>;

/// What LibTorch adds up of one plane, of each channel of a block.
template <int64_t kBundles>
struct PlaneSums {
  float gradients[kBundles * kLanes];
  float products[kBundles * kLanes];
};

/// \tparam kBundles  vectors that a block takes
template <ProductSum kSum, int64_t kBundles>
class BatchNormReluPoolBackwardBlocksKernel final : public Kernel {
 public:
  BatchNormReluPoolBackwardBlocksKernel(const BatchNormReluPoolGradients& tensors,
                                        const ImageShape& shape,
                                        PairedPlane plane)
      : t_(tensors),
        shape_(shape),
        plane_(plane),
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

  /// One row of a plane, with the windows that it is in.
  struct Row {
    const float* x;
    const float* gradients;  ///< of the windows
    const uint8_t* routes;
    int32_t first_route;  ///< of the row's first element in its window
    int64_t in_windows;   ///< elements; none have those behind
  };

  int64_t blocks() const { return shape_.channels / kBlock; }

  template <class Treat>
  void each_plane(Treat treat) const {
    at::parallel_for(0, shape_.batch * blocks(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        treat(plane);
      }
    });
  }

  Row row_of(int64_t plane, int64_t y) const {
    const bool is_pooled = y / 2 < plane_.out_height();
    const int64_t windows = plane * plane_.windows() + (is_pooled ? y / 2 * plane_.out_width() : 0);
    return {t_.x.as<float>() + (plane * plane_.size() + y * plane_.width) * kBlock,
            t_.gradient.as<float>() + windows * kBlock,
            t_.routes.as<uint8_t>() + windows * kBlock,
            static_cast<int32_t>(y % 2 * 2),
            is_pooled ? plane_.out_width() * 2 : 0};
  }

  /// Calls `treat(i, bundle, dy)` with each element of a row and its gradient.
  template <class Treat>
  RONDO_AVX2 RONDO_INLINE void each_element(const Row& row, Treat treat) const {
    int64_t i = 0;
    for (int64_t window = 0; i < row.in_windows; i += 2, window += kBlock) {
      for (int64_t b = 0; b < kBundles; ++b) {
        // A gradient of -0 becomes 0, as in a sum that begins with zero.
        const Lanes gradients = load(row.gradients + window + b * kLanes) + 0.0F;
        const LaneInts routes = load_routes(row.routes + window + b * kLanes);
        treat(i, b, routes == row.first_route ? gradients : Lanes{});
        treat(i + 1, b, routes == row.first_route + 1 ? gradients : Lanes{});
      }
    }
    for (; i < plane_.width; ++i) {
      for (int64_t b = 0; b < kBundles; ++b) {
        treat(i, b, Lanes{});
      }
    }
  }

  RONDO_AVX2 void add_plane(int64_t plane) {
    const float* const mean = t_.mean.as<float>() + plane % blocks() * kBlock;
    Bundles<kBundles> means;
    Bundles<kBundles> gradients[kLanes] = {};
    Bundles<kBundles> products[kLanes] = {};
    for (int64_t b = 0; b < kBundles; ++b) {
      means[static_cast<size_t>(b)] = load(mean + b * kLanes);
    }
    for (int64_t y = 0; y < plane_.height; ++y) {
      const Row row = row_of(plane, y);
      const int64_t first = y * plane_.width;
      each_element(row, [&](int64_t i, int64_t b, Lanes gradient) RONDO_AVX2 RONDO_INLINE_LAMBDA {
        const auto bundle = static_cast<size_t>(b);
        const auto place = static_cast<uint64_t>(first + i) % kLanes;
        const Lanes distance = load(row.x + i * kBlock + b * kLanes) - means[bundle];
        gradients[place][bundle] += gradient;
        products[place][bundle] = add_product<kSum>(distance, gradient, products[place][bundle]);
      });
    }
    PlaneSums<kBundles>& sums = sums_[static_cast<size_t>(plane)];
    add_up(gradients, sums.gradients);
    add_up(products, sums.products);
  }

  // Halves, quarters, neighbours, as `added_up` of the lanes of a vector.
  static RONDO_AVX2 RONDO_INLINE void add_up(Bundles<kBundles>* places, float* sums) {
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
    return finish({shape_,
                   /*dy=*/nullptr,
                   t_.x.as<float>(),
                   t_.weight.as<float>(),
                   t_.mean.as<float>(),
                   t_.inverse_deviation.as<float>(),
                   t_.dx.as<float>(),
                   t_.dweight.as<float>(),
                   t_.dbias.as<float>()},
                  channel,
                  sums);
  }

  RONDO_AVX2 void compute_plane(int64_t plane) const {
    GradientSlopes slopes[kBundles];
    for (int64_t i = 0; i < kBlock; ++i) {
      const auto channel = static_cast<size_t>(plane % blocks() * kBlock + i);
      slopes[i / kLanes].set(i % kLanes, slopes_[channel]);
    }
    for (int64_t y = 0; y < plane_.height; ++y) {
      const Row row = row_of(plane, y);
      float* const dx = t_.dx.as<float>() + (row.x - t_.x.as<float>());
      each_element(row, [&](int64_t i, int64_t b, Lanes gradient) RONDO_AVX2 RONDO_INLINE_LAMBDA {
        const int64_t place = i * kBlock + b * kLanes;
        const Lanes slope = slopes[b](load(row.x + place), gradient);
        std::memcpy(dx + place, &slope, sizeof slope);
      });
    }
  }

  BatchNormReluPoolGradients t_;
  ImageShape shape_;
  PairedPlane plane_;
  std::vector<PlaneSums<kBundles>> sums_;  // by example and block
  std::vector<GradientSlope> slopes_;      // by channel
};

template <int64_t kBundles>
bool accepts(const StepProgram& program, const Instruction& instruction) {
  return is_batch_norm_relu_pool_backward(program, instruction) &&
         block_of(*slot_at(program, instruction.arguments, 2)) == kBundles * kLanes;
}

template <ProductSum kSum, int64_t kBundles>
std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const PlanMemory& memory) {
  const Slot& x = *slot_at(program, instruction.arguments, 2);
  return std::make_unique<BatchNormReluPoolBackwardBlocksKernel<kSum, kBundles>>(
      batch_norm_relu_pool_gradients(instruction, memory), shape_of(image_sizes(x)), plane_of(x));
}

template <ProductSum kSum, int64_t kBundles>
OwnKernel kernel() {
  return {"rondo::batch_norm_relu_pool_backward", accepts<kBundles>, make<kSum, kBundles>};
}

}  // namespace

std::vector<OwnKernel> batch_norm_relu_pool_backward_blocks_kernels() {
  return {kernel<ProductSum::Fused, 1>(),
          kernel<ProductSum::Fused, 2>(),
          kernel<ProductSum::Rounded, 1>(),
          kernel<ProductSum::Rounded, 2>()};
}

}  // namespace rondo
