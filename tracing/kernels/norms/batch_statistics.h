#pragma once

#include <cmath>
#include <cstdint>

#include "tracing/kernels/kernel.h"
#include "tracing/program/image.h"
#include "tracing/program/step_program.h"

namespace rondo {

/// [batch, channels, image…], contiguous.
struct ImageShape {
  int64_t batch;
  int64_t channels;
  int64_t image;

  int64_t per_channel() const { return batch * image; }

  int64_t planes() const { return batch * channels; }
};

/// \param x  of two dimensions and more, not empty
ImageShape image_shape(const Slot& x);

/// Of an image, in whatever layout.
inline ImageShape shape_of(const ImageSizes& sizes) {
  return {sizes.batch, sizes.channels, sizes.pixels()};
}

/// What a batch norm computes of its batch, channel by channel, and where it keeps it.
struct BatchStatistics {
  const float* x;
  ImageShape shape;
  float momentum;
  double eps;
  float* running_mean;
  float* running_var;
  float* mean;
  float* inverse_deviation;
};

/// With LibTorch's bits: it adds the elements of a channel in double precision, one after the
/// other, first themselves and then the squares of their distances from the mean.
/// Source: batch_norm_cpu_collect_stats_contiguous_impl, ATen/native/cpu/batch_norm_kernel.cpp, and
/// batch_norm_cpu_update_stats_template, ATen/native/Normalization.cpp.
void collect(const BatchStatistics& statistics);

/// With each plane added up in vectors. Needs AVX2.
void collect_in_lanes(const BatchStatistics& statistics);

/// Of an image whose channels lie side by side in blocks of eight or sixteen, with the bits of
/// `collect`. Needs AVX2.
void collect_in_blocks(const BatchStatistics& statistics, int64_t block);

/// y = x * scale + shift, as LibTorch normalises.
struct Normalisation {
  float scale;
  float shift;

  /// Whether all elements of the channel are: others make its statistics NaN.
  bool is_finite() const { return std::isfinite(scale) && std::isfinite(shift); }
};

/// What a kernel of a batch norm in training reads and keeps, whatever it makes of the numbers.
struct BatchNormOperands {
  ImageShape shape;
  float momentum;
  double eps;
  Operand x;
  Operand weight;
  Operand bias;
  Operand running_mean;
  Operand running_var;
  Operand mean;
  Operand inverse_deviation;

  BatchStatistics statistics() const;

  /// With the statistics that were collected.
  Normalisation normalisation(int64_t channel) const;
};

}  // namespace rondo
