#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tracing/kernels/kernel.h"
#include "tracing/plan/plan_memory.h"
#include "tracing/program/step_program.h"

namespace rondo {

/// What a guard's kernel throws when the answer is another one than was recorded. No
/// std::exception: only the executor, which undoes the run, can deal with it.
struct GuardFailed {
  std::string answer;  ///< see `answer_of`
};

/// Calls an operator whose results are all values on the host, and compares them.
std::unique_ptr<Kernel> compare_answer(const Instruction& guard, const PlanMemory& memory);

/// Calls an operator, compares the sizes of what it returned, and takes over the memory.
/// \param slots  as for `call_and_adopt`
std::unique_ptr<Kernel> compare_sizes_and_adopt(const Instruction& guard,
                                                const std::vector<SlotId>& slots,
                                                PlanMemory& memory);

}  // namespace rondo
