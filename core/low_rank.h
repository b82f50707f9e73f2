#pragma once

#include <ATen/core/Tensor.h>

namespace rondo {

/// Names of what a low-rank adapter adds to a layer: `weight + lora_scale (lora_B lora_A)`.
inline constexpr const char* kLowRankA = "lora_A";          ///< [rank, columns]
inline constexpr const char* kLowRankB = "lora_B";          ///< [rows, rank], zeros at first
inline constexpr const char* kLowRankScale = "lora_scale";  ///< [], alpha / rank

/// `weight + scale (b a)` in the shape of `weight`, whose first dimension is the rows.
/// \capture safe
at::Tensor with_low_rank(const at::Tensor& weight,
                         const at::Tensor& a,
                         const at::Tensor& b,
                         const at::Tensor& scale);

}  // namespace rondo
