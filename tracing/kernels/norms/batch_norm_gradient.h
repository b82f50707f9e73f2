#pragma once

#include <cstdint>

#include "core/vector_loop.h"
#include "tracing/kernels/lanes.h"
#include "tracing/kernels/norms/batch_statistics.h"

namespace rondo {

// The gradient of a batch norm that was run in training.
//
// LibTorch adds the elements of a plane (one channel of one example) in eight lanes, each addition
// waiting for the last one, and the planes in double precision. Several planes side by side keep
// the order of each and do not wait.
// Source: batch_norm_cpu_backward_contiguous_impl, ATen/native/cpu/batch_norm_kernel.cpp.

/// What it is computed of, and where to. `dx` may be `dy`.
struct BatchNormGradient {
  ImageShape shape;  ///< of dy, x and dx; an image has a vector's width at least
  const float* dy;
  const float* x;
  const float* weight;
  const float* mean;
  const float* inverse_deviation;
  float* dx;
  float* dweight;
  float* dbias;
};

/// Arguments and results, but for the gradient of what was normalised.
struct BatchNormGradientOperands {
  Operand x;
  Operand weight;
  Operand mean;
  Operand inverse_deviation;
  Operand dx;
  Operand dweight;
  Operand dbias;

  BatchNormGradient with(const ImageShape& shape, const float* dy) const {
    return {shape,
            dy,
            x.as<float>(),
            weight.as<float>(),
            mean.as<float>(),
            inverse_deviation.as<float>(),
            dx.as<float>(),
            dweight.as<float>(),
            dbias.as<float>()};
  }
};

/// What the gradients of one channel are made of.
struct GradientSums {
  double gradient = 0.0;  ///< of dy
  double product = 0.0;   ///< of (x - mean) * dy
};

namespace detail {

/// Planes that are added up side by side.
inline constexpr int64_t kPlanes = 4;

/// Adds kCount planes, which lie `step` elements apart, to the sums.
template <ProductSum kSum, int64_t kCount>
RONDO_AVX2 void add_planes(
    const float* x, const float* dy, int64_t step, int64_t image, float mean, GradientSums& sums) {
  Lanes gradients[kCount];
  Lanes products[kCount];
  const Lanes means = mean - Lanes{};
  for (int64_t p = 0; p < kCount; ++p) {
    gradients[p] = load(dy + p * step);
    products[p] = (load(x + p * step) - means) * gradients[p];
  }
  const int64_t whole = image - image % kLanes;
  for (int64_t i = kLanes; i < whole; i += kLanes) {
    for (int64_t p = 0; p < kCount; ++p) {
      const Lanes gradient = load(dy + p * step + i);
      gradients[p] += gradient;
      const Lanes distance = load(x + p * step + i) - means;
      products[p] = add_product<kSum>(distance, gradient, products[p]);
    }
  }
  for (int64_t p = 0; p < kCount; ++p) {
    for (int64_t i = whole; i < image; ++i) {
      const float gradient = dy[p * step + i];
      gradients[p][i - whole] += gradient;
      const float distance = x[p * step + i] - mean;
      products[p][i - whole] = add_product<kSum>(distance, gradient, products[p][i - whole]);
    }
    sums.gradient += static_cast<double>(added_up(gradients[p]));
    sums.product += static_cast<double>(added_up(products[p]));
  }
}

template <ProductSum kSum, class Prepare>
GradientSums sums_of(const BatchNormGradient& g, int64_t channel, Prepare prepare) {
  const int64_t image = g.shape.image;
  const int64_t step = g.shape.channels * image;
  const float* const x = g.x + channel * image;
  const float* const dy = g.dy + channel * image;
  GradientSums sums;
  int64_t n = 0;
  for (; n + kPlanes <= g.shape.batch; n += kPlanes) {
    for (int64_t p = 0; p < kPlanes; ++p) {
      prepare((n + p) * g.shape.channels + channel);
    }
    add_planes<kSum, kPlanes>(x + n * step, dy + n * step, step, image, g.mean[channel], sums);
  }
  for (; n < g.shape.batch; ++n) {
    prepare(n * g.shape.channels + channel);
    add_planes<kSum, 1>(x + n * step, dy + n * step, step, image, g.mean[channel], sums);
  }
  return sums;
}

}  // namespace detail

/// What the gradient of an element follows from: its own numbers, and those of its channel.
struct GradientSlope {
  float mean;
  float slope;
  float shift;
  float deviation;
  float weight;

  RONDO_INLINE float operator()(float x, float dy) const {
    return __builtin_fmaf(-(x - mean), slope, dy - shift) * deviation * weight;
  }
};

/// Those of eight channels.
struct GradientSlopes {
  Lanes mean;
  Lanes slope;
  Lanes shift;
  Lanes deviation;
  Lanes weight;

  void set(int64_t lane, const GradientSlope& of) {
    mean[lane] = of.mean;
    slope[lane] = of.slope;
    shift[lane] = of.shift;
    deviation[lane] = of.deviation;
    weight[lane] = of.weight;
  }

  RONDO_AVX2 RONDO_INLINE Lanes operator()(Lanes x, Lanes dy) const {
    return fused(-(x - mean), slope, dy - shift) * deviation * weight;
  }
};

/// Keeps the gradients of the channel's weight and bias.
inline GradientSlope finish(const BatchNormGradient& g, int64_t channel, const GradientSums& sums) {
  const float deviation = g.inverse_deviation[channel];
  const int64_t count = g.shape.per_channel();
  g.dweight[channel] = static_cast<float>(sums.product * static_cast<double>(deviation));
  g.dbias[channel] = static_cast<float>(sums.gradient);
  return {g.mean[channel],
          static_cast<float>(sums.product) * deviation * deviation / static_cast<float>(count),
          static_cast<float>(sums.gradient / static_cast<double>(count)),
          deviation,
          g.weight[channel]};
}

/// Computes it for one channel. Needs AVX2.
/// \param prepare  `void(int64_t plane)`, called before a plane of `dy` is read
template <ProductSum kSum, class Prepare>
void compute_channel(const BatchNormGradient& g, int64_t channel, Prepare prepare) {
  const GradientSums sums = detail::sums_of<kSum>(g, channel, prepare);
  const GradientSlope slope = finish(g, channel, sums);
  for (int64_t n = 0; n < g.shape.batch; ++n) {
    const int64_t plane = (n * g.shape.channels + channel) * g.shape.image;
    const float* const x = g.x + plane;
    const float* const dy = g.dy + plane;
    float* const dx = g.dx + plane;
    vector_loop([=](int64_t i) RONDO_INLINE_LAMBDA { dx[i] = slope(x[i], dy[i]); }, g.shape.image);
  }
}

}  // namespace rondo
