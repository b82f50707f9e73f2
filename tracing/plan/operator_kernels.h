#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tracing/kernels/kernel.h"
#include "tracing/plan/given_tensors.h"
#include "tracing/plan/plan_memory.h"
#include "tracing/program/step_program.h"

namespace rondo {

// Instructions run by LibTorch's own operators, through the dispatcher.

/// An operator with an instruction's arguments, which are made once. Tensors of the plan are as
/// planned after each run, even one that throws.
class BoxedCall {
 public:
  BoxedCall(const c10::OperatorHandle& op,
            const Instruction& instruction,
            const PlanMemory& memory);

  const c10::OperatorHandle& op() const { return op_; }

  /// Another argument, at the end.
  void add_argument(c10::IValue value) { arguments_.push_back(std::move(value)); }

  /// Replaces an argument.
  void set_argument(size_t place, c10::IValue value) { arguments_[place] = std::move(value); }

  /// Valid until the next run; the caller may take the values and should drop them.
  /// \throws CaptureError  when an operator that is not LibTorch's or rondo's own changed the shape
  ///                       or memory of a tensor; theirs are tried before they are trusted
  torch::jit::Stack& run();

 private:
  c10::OperatorHandle op_;
  std::vector<c10::IValue> arguments_;
  GivenTensors given_;
  bool is_foreign_;
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

/// Whether an operator writes its result into a tensor that it is given, which it may resize. Its
/// schema says so: "Tensor(a!) out", after the other arguments and by name.
bool takes_out(const c10::OperatorHandle& op);

/// Calls the operator and copies what it returns to where the results are planned. What it takes to
/// write its results into are tensors of their own, which it may resize.
class CopyingCall final : public Kernel {
 public:
  CopyingCall(const Instruction& instruction, const PlanMemory& memory);

  void run() override { put(call()); }

  /// What the operator returns. Holes stand for results that are not defined.
  std::vector<at::Tensor> call();

  /// Copies it to where the results are planned.
  /// \throws CaptureError  when a tensor has another shape or dtype than planned
  void put(const std::vector<at::Tensor>& returned);

  /// The results, where they are planned.
  const std::vector<at::Tensor>& results() const { return results_; }

 private:
  void refuse_other(const std::vector<at::Tensor>& returned) const;

  BoxedCall call_;
  GivenTensors given_;
  std::vector<at::Tensor> results_;
  std::vector<std::pair<size_t, at::Tensor>> outs_;  // place among the arguments, as planned
};

/// Gets what an operator returned and where its results are planned; may throw.
using CheckReturned = std::function<void(const std::vector<at::Tensor>& returned,
                                         const std::vector<at::Tensor>& planned)>;

/// Calls the operator and takes over the memory of what it returned; nothing is copied.
/// \param slots  the results to adopt: the first of each storage
/// \param check  before anything is taken over; none: nothing is checked
std::unique_ptr<Kernel> call_and_adopt(const Instruction& instruction,
                                       const std::vector<SlotId>& slots,
                                       PlanMemory& memory,
                                       CheckReturned check = nullptr);

}  // namespace rondo
