#pragma once

#include "backends/plan/kernels/batch_norm_gradient.h"
#include "backends/plan/kernels/batch_statistics.h"
#include "backends/plan/plan_memory.h"

namespace rondo {

// What kernels of a batch norm in training, and of its gradient, share, however images lie in
// memory.

/// (input, weight, bias, running_mean, running_var, training, momentum, eps) -> (y, mean,
/// inverse_deviation), with all tensors there.
bool is_batch_norm(const StepProgram& program, const Instruction& instruction);

BatchNormOperands batch_norm_operands(const ImageShape& shape,
                                      const Instruction& instruction,
                                      const PlanMemory& memory);

/// (dy, input, weight, running_mean, running_var, mean, inverse_deviation, train, eps, mask) ->
/// (dx, dweight, dbias), with all tensors there but for the running ones. Its kernels need AVX2.
bool is_batch_norm_backward(const StepProgram& program, const Instruction& instruction);

BatchNormGradientOperands batch_norm_gradient_operands(const Instruction& instruction,
                                                       const PlanMemory& memory);

}  // namespace rondo
