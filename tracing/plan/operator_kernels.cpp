#include "tracing/plan/operator_kernels.h"

#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "core/operator_facts.h"
#include "tracing/program/operator_effects.h"
#include "tracing/program/tensor_list.h"

namespace rondo {

namespace {

c10::IValue value_of(const Argument& argument, const c10::TypePtr& type, const PlanMemory& memory) {
  switch (argument.kind) {
    case Argument::Kind::Constant:
      return argument.constant;
    case Argument::Kind::Tensor:
      return memory.tensor(argument.slots[0]);
    case Argument::Kind::TensorList:
      break;
  }
  std::vector<at::Tensor> tensors;
  for (const SlotId slot : argument.slots) {
    tensors.push_back(memory.tensor(slot));
  }
  return tensor_list(tensors, type);
}

std::vector<c10::IValue> values_of(const c10::OperatorHandle& op,
                                   const std::vector<Argument>& arguments,
                                   const PlanMemory& memory) {
  std::vector<c10::IValue> values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    values.push_back(value_of(arguments[i], op.schema().arguments()[i].type(), memory));
  }
  return values;
}

// Takes the tensors among returned values, lists unpacked; in the order of `result_slots`.
void take_tensors(torch::jit::Stack& values, std::vector<at::Tensor>& tensors) {
  tensors.clear();
  for (const c10::IValue& value : values) {
    if (value.isTensor()) {
      tensors.push_back(value.toTensor());
    } else if (value.isTensorList()) {
      for (const c10::IValue& item : value.toListRef()) {
        tensors.push_back(item.toTensor());
      }
    }
  }
  values.clear();
}

std::vector<SlotId> result_slots(const Instruction& instruction) {
  std::vector<SlotId> slots;
  for (const Result& result : instruction.results) {
    slots.insert(slots.end(), result.slots.begin(), result.slots.end());
  }
  return slots;
}

bool is_foreign(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  return name.rfind("aten::", 0) != 0 && name.rfind("rondo::", 0) != 0;
}

bool is_out(const c10::Argument& argument) {
  return argument.kwarg_only() && is_written(argument);
}

std::string describe(const at::Tensor& tensor) {
  return tensor.defined()
             ? fmt::format(
                   "{}[{}]", at::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "))
             : "no tensor";
}

class InPlaceCall final : public Kernel {
 public:
  explicit InPlaceCall(BoxedCall call) : call_(std::move(call)) {}

  void run() override { call_.run().clear(); }

 private:
  BoxedCall call_;
};

class PreparedKernel final : public Kernel {
 public:
  explicit PreparedKernel(PreparedCall call) : call_(std::move(call)) {}

  void run() override { call_(); }

 private:
  PreparedCall call_;
};

class AdoptingCall final : public Kernel {
 public:
  AdoptingCall(const Instruction& instruction,
               const std::vector<SlotId>& slots,
               PlanMemory& memory,
               CheckReturned check)
      : call_(instruction.op, instruction, memory), memory_(memory), check_(std::move(check)) {
    const std::vector<SlotId> all = result_slots(instruction);
    for (const SlotId slot : all) {
      planned_.push_back(memory.tensor(slot));
    }
    for (const SlotId slot : slots) {
      const auto place = std::find(all.begin(), all.end(), slot) - all.begin();
      results_.emplace_back(static_cast<size_t>(place), slot);
    }
  }

  void run() override {
    take_tensors(call_.run(), returned_);
    if (check_) {
      check_(returned_, planned_);
    }
    for (const auto& [place, slot] : results_) {
      memory_.adopt(slot, returned_[place], call_.op());
    }
    returned_.clear();
  }

 private:
  BoxedCall call_;
  PlanMemory& memory_;
  CheckReturned check_;
  std::vector<at::Tensor> planned_;
  std::vector<at::Tensor> returned_;                // empty between runs, but for its memory
  std::vector<std::pair<size_t, SlotId>> results_;  // place among the returned tensors, slot
};

}  // namespace

BoxedCall::BoxedCall(const c10::OperatorHandle& op,
                     const Instruction& instruction,
                     const PlanMemory& memory)
    : op_(op),
      arguments_(values_of(op, instruction.arguments, memory)),
      given_(instruction, memory),
      is_foreign_(is_foreign(op)),
      needs_grad_mode_(instruction.needs_grad_mode) {}

torch::jit::Stack& BoxedCall::run() {
  stack_.clear();
  stack_.insert(stack_.end(), arguments_.begin(), arguments_.end());
  const c10::AutoGradMode mode(needs_grad_mode_);
  try {
    op_.callBoxed(&stack_);
  } catch (...) {
    given_.put_back();
    throw;
  }
  if (is_foreign_ && !given_.put_back()) {
    throw CaptureError(operator_name(op_) +
                       " changed the shape or the memory of a tensor that it was given; let it "
                       "return a new tensor instead");
  }
  return stack_;
}

bool takes_out(const c10::OperatorHandle& op) {
  const auto& arguments = op.schema().arguments();
  return std::any_of(arguments.begin(), arguments.end(), is_out);
}

std::unique_ptr<Kernel> call_in_place(const Instruction& instruction, const PlanMemory& memory) {
  const OperatorFacts* const facts = find_operator_facts(operator_name(instruction.op));
  if (facts != nullptr && facts->prepare) {
    if (PreparedCall call =
            facts->prepare(values_of(instruction.op, instruction.arguments, memory))) {
      return std::make_unique<PreparedKernel>(std::move(call));
    }
  }
  return std::make_unique<InPlaceCall>(BoxedCall(instruction.op, instruction, memory));
}

std::unique_ptr<Kernel> call_out(const Instruction& instruction,
                                 const c10::OperatorHandle& out,
                                 const PlanMemory& memory) {
  BoxedCall call(out, instruction, memory);
  for (const SlotId slot : result_slots(instruction)) {
    call.add_argument(memory.tensor(slot));
  }
  return std::make_unique<InPlaceCall>(std::move(call));
}

CopyingCall::CopyingCall(const Instruction& instruction, const PlanMemory& memory)
    : call_(instruction.op, instruction, memory), given_(instruction, memory) {
  for (const SlotId slot : result_slots(instruction)) {
    results_.push_back(memory.tensor(slot));
  }
  for (size_t i = 0; i < instruction.arguments.size(); ++i) {
    const Argument& argument = instruction.arguments[i];
    if (argument.kind == Argument::Kind::Tensor && is_out(instruction.op.schema().arguments()[i])) {
      outs_.emplace_back(i, memory.tensor(argument.slots[0]));
    }
  }
}

std::vector<at::Tensor> CopyingCall::call() {
  for (const auto& [place, planned] : outs_) {
    // With its strides: they may decide the order of the arithmetic.
    const at::Tensor out = at::empty_strided(planned.sizes(), planned.strides(), planned.options());
    call_.set_argument(place, out.copy_(planned));
  }
  std::vector<at::Tensor> returned;
  take_tensors(call_.run(), returned);
  return returned;
}

void CopyingCall::put(const std::vector<at::Tensor>& returned) {
  given_.put_back();
  refuse_other(returned);
  for (size_t i = 0; i < results_.size(); ++i) {
    if (results_[i].defined()) {
      results_[i].copy_(returned[i]);
    }
  }
}

void CopyingCall::refuse_other(const std::vector<at::Tensor>& returned) const {
  if (returned.size() != results_.size()) {
    throw CaptureError(fmt::format("{} returned {} tensors, planned are {}",
                                   operator_name(call_.op()),
                                   returned.size(),
                                   results_.size()));
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    const at::Tensor& planned = results_[i];
    const bool fits =
        !planned.defined() || (returned[i].defined() && returned[i].sizes() == planned.sizes() &&
                               returned[i].scalar_type() == planned.scalar_type());
    if (!fits) {
      throw CaptureError(operator_name(call_.op()) + " returned " + describe(returned[i]) +
                         ", planned is " + describe(planned));
    }
  }
}

std::unique_ptr<Kernel> call_and_adopt(const Instruction& instruction,
                                       const std::vector<SlotId>& slots,
                                       PlanMemory& memory,
                                       CheckReturned check) {
  return std::make_unique<AdoptingCall>(instruction, slots, memory, std::move(check));
}

}  // namespace rondo
