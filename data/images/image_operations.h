#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace rondo {

// Changes of pictures by chance, each picture of a batch by numbers of its own, as tensor code that
// a step can hold: what it draws comes from LibTorch's default generator. Pictures are floating
// [B, channels, height, width]; results have the same shape.

/// Exchanges left and right. \param chance  of a picture, in [0, 1]
at::Tensor random_flip(const at::Tensor& images, double chance);

/// Moves pictures by up to `reach` pixels along each side; zeros come in at the edges.
/// \param reach  >= 0
at::Tensor random_shift(const at::Tensor& images, int64_t reach);

/// Multiplies values by 1 ± `brightness`, and differences from the picture's mean by 1 ±
/// `contrast`. Both in [0, 1].
at::Tensor random_light(const at::Tensor& images, double brightness, double contrast);

/// Sets a part of pictures to zero: a rectangle of up to half of each side.
/// Source: DeVries and Taylor 2017, arXiv:1708.04552; Zhong et al. 2017, arXiv:1708.04896.
/// \param chance  of a picture, in [0, 1]
at::Tensor random_erase(const at::Tensor& images, double chance);

}  // namespace rondo
