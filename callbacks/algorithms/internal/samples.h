#pragma once

#include <ATen/core/Tensor.h>

#include "core/tensor_map.h"

namespace rondo::detail {

/// Labels as shares of classes: floating, of the shape and type of the logits. Integers become one
/// class each, and those below 0, which a loss leaves out, none; shares stay.
/// \throws ShapeError  when they do not go together
at::Tensor shares_of(const at::Tensor& labels, const at::Tensor& logits);

/// A number from Beta(alpha, alpha), float64 [], from the step's generator.
at::Tensor random_beta(double alpha, const c10::Device& device);

/// Samples in the order of `index`, int64 [B].
at::Tensor reordered(const at::Tensor& samples, const at::Tensor& index);

/// \throws UsageError  when the loss is there already: the model computes it without `with_loss`
void require_open_loss(const Outputs& outputs, const char* algorithm);

/// \throws ShapeError  unless they are floating [B, channels, height, width]
void require_images(const at::Tensor& images, const char* algorithm);

}  // namespace rondo::detail
