#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include "tracing/kernels/own_kernels.h"
#include "tracing/program/step_program.h"

namespace rondo {

/// Whether a kernel gives its operator's bytes on random numbers.
enum class ProbeOutcome {
  Agrees,
  Differs,
  Unknown  ///< the operator takes no such numbers, or its tensors are very large
};

/// Tries a kernel on random numbers, in tensors with the layouts of the instruction's. The trials
/// on a run's own data are no substitute: that data may be mostly zeros, and numbers that happen to
/// round alike hide another order of summation. Very large tensors are left to the trials: they
/// hold enough numbers. Found out once a process for each kernel, layout and number of threads.
/// LibTorch's generator is afterwards as it was.
ProbeOutcome probe(const OwnKernel& own,
                   const StepProgram& program,
                   const Instruction& instruction);

/// The same of an operator's out variant.
ProbeOutcome probe(const c10::OperatorHandle& out,
                   const StepProgram& program,
                   const Instruction& instruction);

/// The first of rondo's own kernels that accepts the instruction and agrees with its operator, or
/// null. Slow.
/// \param exact  only those that give equal bytes
const OwnKernel* find_own_kernel(const StepProgram& program,
                                 const Instruction& instruction,
                                 bool exact = true);

}  // namespace rondo
