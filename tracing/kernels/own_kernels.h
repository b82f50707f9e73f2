#pragma once

#include <memory>
#include <vector>

#include "tracing/kernels/kernel.h"
#include "tracing/kernels/operands.h"
#include "tracing/program/step_program.h"

namespace rondo {

/// A kernel of rondo's own for one operator of LibTorch: the same arithmetic in the same order,
/// without what the dispatcher, shape checks and iterators cost. It is compared with the operator
/// that it stands for on random numbers before it is used, and on the run's own before a plan's
/// first replay: when a byte differs, the operator runs.
struct OwnKernel {
  const char* op;  ///< with overload, such as "aten::sum.dim_IntList"

  /// Whether it can run the instruction: dtypes, strides, options.
  bool (*accepts)(const StepProgram& program, const Instruction& instruction);

  std::unique_ptr<Kernel> (*make)(const StepProgram& program,
                                  const Instruction& instruction,
                                  const Operands& memory);

  /// How far its results may be from the operator's, in units in the last place of the largest of
  /// them; 0: equal bytes. Others than 0 run under `backend.exact = false` only.
  int ulps = 0;

  /// May write its result over any tensor argument of the same dtype and layout.
  bool in_place = false;

  /// Where all tensors of the instruction must be.
  c10::DeviceType device = c10::kCPU;
};

/// All of them; the one place to add another to. An operator may have several: see
/// `find_own_kernel`.
const std::vector<OwnKernel>& own_kernels();

}  // namespace rondo
