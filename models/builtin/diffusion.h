#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "models/wrapped_model.h"

namespace rondo {

/// Denoising diffusion model of small images: a U-Net with group norms that knows how much noise an
/// image has, and predicts the noise. Sees "image", floating [B, channels, H, W] in [0, 1], with H
/// and W multiples of 2 to the depth. Returns "loss", the mean squared error of the noise that it
/// predicts, and "prediction". In training times and noise are drawn; otherwise the times are
/// spread evenly over the batch and the noise is fixed, so that an evaluation can be repeated.
/// \capture safe
/// Source: Ho et al. 2020, arXiv:2006.11239, without attention; cosine schedule: Nichol and
/// Dhariwal 2021, arXiv:2102.09672.
class Diffusion final : public WrappedModel {
 public:
  struct Options {
    int64_t channels = 1;             ///< of the images, >= 1
    int64_t image_size = 28;          ///< pixels a side, a multiple of 2 to the depth
    int64_t width = 32;               ///< channels of the first level, a multiple of 8
    int64_t depth = 2;                ///< times that the size is halved, in [1, 8]
    int64_t steps = 200;              ///< from an image to noise, >= 2
    std::string schedule = "cosine";  ///< how the noise grows: "cosine" or "linear"
  };

  /// \throws UsageError  for options out of range
  static void check(const Options& options);

  /// \throws UsageError  for options out of range
  explicit Diffusion(const Options& options);

  /// Makes images out of noise, in eval mode without gradients, and restores the mode.
  /// \param count  >= 1
  /// \param seed   of the noise
  /// \return [count, channels, image_size, image_size] in [0, 1]
  /// \capture host only
  at::Tensor sample(int64_t count, uint64_t seed);
};

}  // namespace rondo
