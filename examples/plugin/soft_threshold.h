#pragma once

#include <ATen/core/Tensor.h>

/// Moves each element of a weight towards zero by `by`, and no further, in place: with it after
/// each update, training ends with weights that are exactly zero (ISTA: Daubechies et al. 2004).
/// \param weight  float32 or float64 on the CPU
void soft_threshold_(at::Tensor& weight, double by);
