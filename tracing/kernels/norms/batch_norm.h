#pragma once

#include "tracing/kernels/norms/batch_norm_gradient.h"
#include "tracing/kernels/norms/batch_statistics.h"
#include "tracing/kernels/operands.h"

namespace rondo {

// What kernels of a batch norm in training, and of its gradient, share, however images lie in
// memory.

/// (input, weight, bias, running_mean, running_var, training, momentum, eps) -> (y, mean,
/// inverse_deviation), with all tensors there.
/// \param channels  of the input, as it lies in memory
bool is_batch_norm(const StepProgram& program,
                   const Instruction& instruction,
                   int64_t (*channels)(const Slot& input));

BatchNormOperands batch_norm_operands(const ImageShape& shape,
                                      const Instruction& instruction,
                                      const Operands& memory);

/// (dy, input, weight, running_mean, running_var, mean, inverse_deviation, train, eps, mask) ->
/// (dx, dweight, dbias), with all tensors there but for the running ones. Its kernels need AVX2.
bool is_batch_norm_backward(const StepProgram& program,
                            const Instruction& instruction,
                            int64_t (*channels)(const Slot& input));

/// Of [batch, channels, …].
inline int64_t plain_channels(const Slot& input) {
  return input.sizes[1];
}

inline int64_t channels_of_image(const Slot& input) {
  return image_sizes(input).channels;
}

BatchNormGradientOperands batch_norm_gradient_operands(const Instruction& instruction,
                                                       const Operands& memory);

}  // namespace rondo
