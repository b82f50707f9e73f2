#pragma once

#include <torch/library.h>

namespace rondo {

/// Defines what passes make of several operators, by the operators that it stands for:
///
/// - `mm_to_`: a matrix product that is copied, or added, to a tensor.
/// - `gradients_of_parts`: the gradient of a tensor of which parts were used.
/// - `batch_norm_relu_pool`: a batch norm in training, ReLU, and the largest of each window of two
///   by two. Instead of indices it returns routes (uint8, one a window): which of its four elements
///   a window's gradient belongs to, row by row, or 4 where ReLU let none through.
/// - `batch_norm_relu_pool_backward`: their gradient.
void define_fused_operators(torch::Library& library);

}  // namespace rondo
