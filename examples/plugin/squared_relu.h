#pragma once

#include <ATen/core/Tensor.h>

/// relu(x) squared, element by element, with its gradient; float32 or float64 on the CPU.
at::Tensor squared_relu(const at::Tensor& x);
