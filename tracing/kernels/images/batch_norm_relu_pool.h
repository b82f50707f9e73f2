#pragma once

#include "tracing/kernels/images/pair_pooling.h"
#include "tracing/kernels/images/pair_routes.h"
#include "tracing/kernels/lanes.h"
#include "tracing/kernels/norms/batch_norm_gradient.h"
#include "tracing/kernels/norms/batch_statistics.h"
#include "tracing/kernels/operands.h"
#include "tracing/program/image.h"

namespace rondo {

// What kernels of `rondo::batch_norm_relu_pool` and of its gradient share, however images lie in
// memory. See operators/fused_operators.h.

/// (x, weight, bias, running_mean, running_var, momentum, eps) -> (largest, routes, mean,
/// inverse_deviation)
struct BatchNormReluPoolOperands {
  BatchNormOperands norm;
  Operand largest;
  Operand routes;
};

BatchNormReluPoolOperands batch_norm_relu_pool_operands(const StepProgram& program,
                                                        const Instruction& instruction,
                                                        const Operands& memory);

/// (gradient, routes, x, weight, mean, inverse_deviation, eps) -> (dx, dweight, dbias)
struct BatchNormReluPoolGradients {
  Operand gradient;
  Operand routes;
  BatchNormGradientOperands norm;
};

BatchNormReluPoolGradients batch_norm_relu_pool_gradients(const Instruction& instruction,
                                                          const Operands& memory);

/// Whether all tensors of either are there, and fit together. What a pass makes of a step does; a
/// file may say anything.
bool is_batch_norm_relu_pool(const StepProgram& program, const Instruction& instruction);
bool is_batch_norm_relu_pool_backward(const StepProgram& program, const Instruction& instruction);

/// relu(x * scale + shift)
/// \tparam Scale  float, or one for each lane
template <bool kWithNaN, class Scale>
struct NormalisedRelu {
  static constexpr bool kMayBeNaN = kWithNaN;

  Scale scale;
  Scale shift;

  RONDO_AVX2 RONDO_INLINE float operator()(float x) const {
    const float y = __builtin_fmaf(x, scale, shift);
    return y < 0.0F ? 0.0F : y;
  }

  RONDO_AVX2 RONDO_INLINE Lanes operator()(Lanes x) const {
    return larger(Lanes{}, fused(x, scale - Lanes{}, shift - Lanes{}));
  }
};

}  // namespace rondo
