#pragma once

#include <ATen/core/Tensor.h>

namespace rondo {

/// State of LibTorch's default generator of the CPU: uint8 [bytes], a copy.
at::Tensor generator_state();

void set_generator_state(const at::Tensor& state);

}  // namespace rondo
