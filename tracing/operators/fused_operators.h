#pragma once

#include <torch/library.h>

namespace rondo {

/// Defines what passes make of one or several operators, by the operators that it stands for:
///
/// - `mm_to_`: a matrix product that is copied, or added, to a tensor.
/// - `gradients_of_parts`: the gradient of a tensor of which parts were used.
/// - `cross_entropy_backward`: the gradient of a mean of cross entropies, [rows, classes]. Takes
///   that of the mean, the logarithms of softmax that forward gave, the labels, the label of rows
///   that do not count, and how many rows do.
/// - `convolution`, `convolution_backward`, `batch_norm`, `batch_norm_backward`: those of LibTorch
///   for images that may be in blocks of channels: [batch, channels / block, height, width, block].
///   A convolution says in `block` how many channels of its result lie side by side (0: none);
///   other images lie as what they are made of, or are the gradient of.
/// - `batch_norm_relu_pool`: a batch norm in training, ReLU, and the largest of each window of two
///   by two. Instead of indices it returns routes (uint8, one a window): which of its four elements
///   a window's gradient belongs to, row by row, or 4 where ReLU let none through.
/// - `batch_norm_relu_pool_backward`: their gradient. Both take images in blocks as well.
void define_fused_operators(torch::Library& library);

}  // namespace rondo
