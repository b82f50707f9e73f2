#include "sweep/operator_trial.h"

#include <ATen/ATen.h>

#include <exception>
#include <memory>
#include <vector>

#include "core/error.h"
#include "tracing/kernels/own_kernels.h"
#include "tracing/plan/operator_kernels.h"
#include "tracing/plan/out_variant.h"
#include "tracing/plan/plan_memory.h"
#include "tracing/plan/trial.h"
#include "tracing/program/kernels_only.h"
#include "tracing/program/storages.h"
#include "tracing/recording/recorder.h"

namespace rondo::test {

namespace {

using Kind = TrialOutcome::Kind;

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

void add_tensors(const c10::IValue& value, CapturedState& state) {
  const auto add = [&](const at::Tensor& tensor) {
    if (tensor.defined()) {
      state.emplace_back("argument " + std::to_string(state.size()), tensor);
    }
  };
  if (value.isTensor()) {
    add(value.toTensor());
  } else if (value.isTensorList() || value.isOptionalTensorList()) {
    for (const c10::IValue& item : value.toListRef()) {
      add(item.isNone() ? at::Tensor() : item.toTensor());
    }
  }
}

/// The call as a step whose state are its tensors.
StepProgram record(const c10::OperatorHandle& op, const SampleArguments& arguments) {
  const at::NoGradGuard no_grad;
  CapturedState state;
  for (const c10::IValue& argument : arguments) {
    add_tensors(argument, state);
  }
  Recorder recorder("sweep", Batch(), [&] { return state; });
  {
    const RecordingScope scope(recorder);
    torch::jit::Stack stack = arguments;
    op.callBoxed(&stack);
  }
  StepProgram program = recorder.finish(Outputs());
  if (recorder.refusal()) {
    throw CaptureError(recorder.refusal()->what);
  }
  return program;
}

/// Why a plan would not let the out variant run the instruction; "" when it would.
std::string objection(const StepProgram& program, const c10::OperatorHandle& op) {
  if (program.instructions.size() != 1 ||
      operator_name(program.instructions[0].op) != operator_name(op)) {
    return "is recorded as other operators";
  }
  const Instruction& instruction = program.instructions[0];
  if (!is_pure(instruction)) {
    return "writes its arguments or draws random numbers: its out variant never runs";
  }
  for (const Result& result : instruction.results) {
    if (result.kind != Argument::Kind::Tensor || result.slots[0] == kNoTensor) {
      return "returns what is no tensor: its out variant never runs";
    }
    const size_t storage = storage_of(program, result.slots[0]);
    if (any_in_storage(program, instruction.arguments, storage)) {
      return "returns a view: its out variant never runs";
    }
  }
  return "";
}

/// The storages of a program of one instruction, each in memory of its own.
class GuardedSlots {
 public:
  GuardedSlots(StepProgram& program, Side side) {
    for (const int64_t bytes : bytes_of_storages(program)) {
      memories_.push_back(std::make_unique<GuardedMemory>(bytes, side));
    }
    std::vector<Home> homes(memories_.size(), Home::Arena);
    for (Slot& slot : program.slots) {
      if (slot.kind != SlotKind::Produced) {
        homes[static_cast<size_t>(slot.storage)] = Home::Outside;
        move_here(slot);
      }
    }
    for (size_t i = 0; i < homes.size(); ++i) {
      if (homes[i] == Home::Outside) {
        memories_[i]->protect();
      }
    }
    memory_ = std::make_unique<PlanMemory>(program, homes, [this](size_t storage, int64_t) {
      return c10::DataPtr(memories_[storage]->data(), c10::kCPU);
    });
  }

  const PlanMemory& memory() const { return *memory_; }

  /// What is wrong with them; "" when nothing is.
  std::string fault(const StepProgram& program) const {
    for (size_t i = 0; i < program.slots.size(); ++i) {
      if (!memory_->is_as_planned(static_cast<SlotId>(i))) {
        return "slot " + std::to_string(i) + " is not as planned";
      }
    }
    for (size_t i = 0; i < memories_.size(); ++i) {
      if (!memories_[i]->is_clean()) {
        return "memory beside storage " + std::to_string(i) + " was written";
      }
    }
    return "";
  }

 private:
  void move_here(Slot& slot) {
    const at::Tensor from = slot.value;
    at::Tensor& base = bases_[slot.storage];
    if (!base.defined()) {
      const GuardedMemory& memory = *memories_[static_cast<size_t>(slot.storage)];
      const int64_t count = memory.bytes() / static_cast<int64_t>(c10::elementSize(slot.dtype));
      base = at::from_blob(memory.data(), {count}, at::TensorOptions().dtype(slot.dtype));
    }
    slot.value = base.as_strided(slot.sizes, slot.strides, slot.offset);
    slot.value.copy_(from);
    if (slot.is_wrapped_number) {
      slot.value.unsafeGetTensorImpl()->set_wrapped_number(true);
    }
  }

  std::vector<std::unique_ptr<GuardedMemory>> memories_;  // one a storage
  std::map<int32_t, at::Tensor> bases_;                   // of storages that are outside
  std::unique_ptr<PlanMemory> memory_;
};

/// Runs one kernel's trial twice.
TrialOutcome run_trial(Kernel& kernel,
                       int ulps,
                       const StepProgram& program,
                       const GuardedSlots& slots) {
  Trial trial(program.instructions[0], slots.memory(), ulps);
  bool agrees = true;
  for (int round = 0; round < 2; ++round) {
    agrees = trial.passes(kernel) && agrees;
    const std::string fault = slots.fault(program);
    if (!fault.empty()) {
      return {Kind::Wrong, fault};
    }
  }
  return {agrees ? Kind::Used : Kind::NotUsed, ""};
}

}  // namespace

TrialOutcome call_plainly(const c10::OperatorHandle& op, const SampleArguments& arguments) {
  const at::NoGradGuard no_grad;
  try {
    torch::jit::Stack stack = arguments;
    op.callBoxed(&stack);
    const std::string reason = objection(record(op, arguments), op);
    return {reason.empty() ? Kind::Used : Kind::NeverOut, reason};
  } catch (const std::exception& error) {
    return {Kind::Unsuitable, first_line(error.what())};
  }
}

TrialOutcome run_trials(const c10::OperatorHandle& op,
                        const SampleArguments& arguments,
                        Side side,
                        const std::function<void()>& begin) {
  try {
    StepProgram program = record(op, arguments);
    const GuardedSlots slots(program, side);
    const KernelsOnly scope;
    const Instruction& instruction = program.instructions[0];
    CopyingCall(instruction, slots.memory()).call();
    begin();
    for (const OwnKernel& own : own_kernels()) {
      if (operator_name(op) == own.op && own.accepts(program, instruction)) {
        const auto kernel = own.make(program, instruction, slots.memory());
        TrialOutcome outcome = run_trial(*kernel, own.ulps, program, slots);
        if (outcome.kind == Kind::Wrong) {
          return {Kind::Wrong, "rondo's own kernel: " + outcome.reason};
        }
      }
    }
    const auto out = call_out(instruction, *find_out_variant(op), slots.memory());
    return run_trial(*out, /*ulps=*/0, program, slots);
  } catch (const std::exception& error) {
    return {Kind::Wrong, first_line(error.what())};
  }
}

}  // namespace rondo::test
