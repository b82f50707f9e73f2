#pragma once

#include "backends/plan/own_kernels.h"
#include "backends/program/step_program.h"

namespace rondo {

/// Whether a kernel gives the operator's bytes on random numbers, in tensors with the layouts of
/// the instruction's. The trials on a run's own data are no substitute: that data may be mostly
/// zeros, and numbers that happen to round alike hide another order of summation. Very large
/// tensors are left to the trials: they hold enough numbers. Found out once a process for each
/// kernel, layout and number of threads. LibTorch's generator is afterwards as it was.
bool agrees_on_random_numbers(const OwnKernel& own,
                              const StepProgram& program,
                              const Instruction& instruction);

}  // namespace rondo
