#pragma once

#include <cstdint>

#include "tracing/program/step_program.h"

namespace rondo {

// Images as passes and kernels know them: [batch, channels, height, width], or with channels side
// by side in blocks, [batch, channels / block, height, width, block] (passes/channel_blocks.cpp).

struct ImageSizes {
  int64_t batch;
  int64_t channels;
  int64_t height;
  int64_t width;

  int64_t pixels() const { return height * width; }
};

/// \param image  of four dimensions, or of five
ImageSizes image_sizes(const Slot& image);

/// How many channels lie side by side; 0: none do.
int64_t block_of(const Slot& image);

}  // namespace rondo
