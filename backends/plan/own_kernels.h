#pragma once

#include <memory>
#include <vector>

#include "backends/plan/kernel.h"
#include "backends/plan/plan_memory.h"
#include "backends/step_program.h"

namespace rondo {

/// A kernel of rondo's own for one operator of LibTorch: the same arithmetic in the same order,
/// without what the dispatcher, shape checks and iterators cost. The first run of a plan compares
/// each with the operator that it stands for and drops it when a byte differs.
struct OwnKernel {
  const char* op;  ///< with overload, such as "aten::sum.dim_IntList"

  /// Whether it can run the instruction: dtypes, strides, options.
  bool (*accepts)(const StepProgram& program, const Instruction& instruction);

  std::unique_ptr<Kernel> (*make)(const StepProgram& program,
                                  const Instruction& instruction,
                                  const PlanMemory& memory);
};

/// All of them; the one place to add another to. An operator may have several: the first that
/// accepts an instruction runs it.
const std::vector<OwnKernel>& own_kernels();

/// The first that accepts the instruction, or null.
const OwnKernel* find_own_kernel(const StepProgram& program, const Instruction& instruction);

}  // namespace rondo
