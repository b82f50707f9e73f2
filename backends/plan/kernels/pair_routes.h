#pragma once

#include <cstdint>

#include "backends/plan/kernels/pair_pooling.h"
#include "backends/program/step_program.h"

namespace rondo {

// What `rondo::batch_norm_relu_pool` keeps for its gradient, one byte a window: see
// recording/fused_operators.h.

/// Of a window whose largest element is zero or below; others, NaN among them, have 0 to 3.
inline constexpr int32_t kNoRoute = 4;

/// Whether `largest` and `routes` have an element for each window of `x` [batch, channels, height,
/// width], all of them without gaps. What a pass makes of a step is so; a file may say anything.
bool fit_together(const Slot* x, const Slot* largest, const Slot* routes);

/// Of `x`.
PairedPlane plane_of(const Slot& x);

/// Brings the gradient of each window of a plane to the element that it belongs to; all others get
/// zero. Needs AVX2.
void spread(PairedPlane plane, const float* gradient, const uint8_t* routes, float* to);

}  // namespace rondo
