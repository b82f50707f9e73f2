#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "tracing/onednn/onednn_call.h"

namespace rondo {

// Convolutions by oneDNN itself. LibTorch calls it as well, but copies images to the blocks of
// channels that oneDNN works on, and back, around each convolution: a third of their time.

/// How many channels oneDNN keeps side by side on this machine; 0: none, or it cannot be called.
int64_t channel_block();

/// How an image lies in memory: float32, [batch, channels, height, width] without gaps, or
/// [batch, channels / block, height, width, block].
struct ImageLayout {
  int64_t block = 0;  ///< channels that lie side by side; 0: none do
};

/// Of images. Pairs are (height, width).
struct ConvolutionShape {
  using Pair = std::array<int64_t, 2>;

  int64_t batch;
  int64_t in;   ///< channels
  int64_t out;  ///< channels
  int64_t groups;
  Pair image;      ///< of the input
  Pair out_image;  ///< of the result
  Pair kernel;
  Pair stride;
  Pair padding;
  Pair dilation;  ///< 1: taps lie side by side
  bool has_bias;
};

// Each has the bits of LibTorch where that calls oneDNN. They need `channel_block() > 0`, and throw
// std::exception where oneDNN has no such convolution. Weights are [out, in / groups, height,
// width], without gaps; \p x is the layout of the input and its gradient, \p y that of the result.

/// Tensors: input, weight, result, and bias where the shape has one.
std::unique_ptr<OneDnnCall> prepare_convolution(const ConvolutionShape& shape,
                                                ImageLayout x,
                                                ImageLayout y);

/// Tensors: gradient of the result, weight, gradient of the input.
std::unique_ptr<OneDnnCall> prepare_gradient_of_input(const ConvolutionShape& shape,
                                                      ImageLayout x,
                                                      ImageLayout y);

/// Tensors: gradient of the result, input, gradient of the weight, and of the bias where the shape
/// has one.
std::unique_ptr<OneDnnCall> prepare_gradient_of_weight(const ConvolutionShape& shape,
                                                       ImageLayout x,
                                                       ImageLayout y);

}  // namespace rondo
