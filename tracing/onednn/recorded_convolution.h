#pragma once

#include <optional>

#include "tracing/onednn/convolution.h"
#include "tracing/program/step_program.h"

namespace rondo {

// Convolutions of a step that oneDNN can run. None is said where it has no such convolution, or
// tensors do not fit together, which a file may say.

/// Of `aten::convolution`, or `rondo::convolution`.
std::optional<ConvolutionShape> shape_of_convolution(const StepProgram& program,
                                                     const Instruction& instruction);

/// Of `aten::convolution_backward`, or `rondo::convolution_backward`: the convolution whose
/// gradient it is. It has a bias where the bias' gradient is asked for.
std::optional<ConvolutionShape> shape_of_convolution_backward(const StepProgram& program,
                                                              const Instruction& instruction);

/// Whether LibTorch runs such a convolution by the same primitive of oneDNN, which it does not for
/// small ones: tried with a few examples of random numbers. Slow at first; remembered.
bool agrees_with_libtorch(const ConvolutionShape& shape);

}  // namespace rondo
