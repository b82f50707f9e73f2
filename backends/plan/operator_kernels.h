#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <memory>
#include <utility>
#include <vector>

#include "backends/plan/kernel.h"
#include "backends/plan/plan_memory.h"
#include "backends/program/step_program.h"

namespace rondo {

// Instructions run by LibTorch's own operators, through the dispatcher.

/// An operator with an instruction's arguments, which are made once.
class BoxedCall {
 public:
  BoxedCall(const c10::OperatorHandle& op,
            const Instruction& instruction,
            const PlanMemory& memory);

  const c10::OperatorHandle& op() const { return op_; }

  /// Another argument, at the end.
  void add_argument(c10::IValue value) { arguments_.push_back(std::move(value)); }

  /// Valid until the next run; the caller may take the values and should drop them.
  torch::jit::Stack& run();

 private:
  c10::OperatorHandle op_;
  std::vector<c10::IValue> arguments_;
  bool needs_grad_mode_;
  torch::jit::Stack stack_;
};

/// Calls the operator; what it returns is dropped. For operators that write their arguments. One
/// that can be prepared is.
std::unique_ptr<Kernel> call_in_place(const Instruction& instruction, const PlanMemory& memory);

/// Calls `out`, an out variant, which writes the instruction's results where they are planned.
std::unique_ptr<Kernel> call_out(const Instruction& instruction,
                                 const c10::OperatorHandle& out,
                                 const PlanMemory& memory);

/// Calls the operator and copies what it returns to where the results are planned.
class CopyingCall final : public Kernel {
 public:
  CopyingCall(const Instruction& instruction, const PlanMemory& memory);

  void run() override { put(call()); }

  /// What the operator returns. Holes stand for results that are not defined.
  std::vector<at::Tensor> call();

  /// Copies it to where the results are planned.
  void put(const std::vector<at::Tensor>& returned);

  /// The results, where they are planned.
  const std::vector<at::Tensor>& results() const { return results_; }

 private:
  BoxedCall call_;
  std::vector<at::Tensor> results_;
};

/// Calls the operator and takes over the memory of what it returned; nothing is copied.
/// \param slots  the results to adopt: the first of each storage
std::unique_ptr<Kernel> call_and_adopt(const Instruction& instruction,
                                       const std::vector<SlotId>& slots,
                                       PlanMemory& memory);

}  // namespace rondo
