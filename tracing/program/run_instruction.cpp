#include "tracing/program/run_instruction.h"

#include <ATen/core/stack.h>
#include <c10/core/GradMode.h>

#include "tracing/program/tensor_list.h"

namespace rondo {

namespace {

at::Tensor tensor_of(SlotId slot, const SlotTensors& tensors) {
  return slot == kNoTensor ? at::Tensor() : tensors[static_cast<size_t>(slot)];
}

c10::IValue value_of(const Argument& argument,
                     const c10::TypePtr& type,
                     const SlotTensors& tensors) {
  switch (argument.kind) {
    case Argument::Kind::Constant:
      return argument.constant;
    case Argument::Kind::Tensor:
      return tensor_of(argument.slots[0], tensors);
    case Argument::Kind::TensorList:
      break;
  }
  std::vector<at::Tensor> items;
  for (const SlotId slot : argument.slots) {
    items.push_back(tensor_of(slot, tensors));
  }
  return tensor_list(items, type);
}

void take(const at::Tensor& result, SlotId slot, SlotTensors& tensors) {
  if (slot != kNoTensor && !tensors[static_cast<size_t>(slot)].defined()) {
    tensors[static_cast<size_t>(slot)] = result;
  }
}

void take(const c10::IValue& value, const Result& result, SlotTensors& tensors) {
  if (result.kind == Argument::Kind::Tensor) {
    take(value.toTensor(), result.slots[0], tensors);
  } else if (result.kind == Argument::Kind::TensorList) {
    const auto items = value.toListRef();
    for (size_t i = 0; i < items.size(); ++i) {
      take(items[i].toTensor(), result.slots[i], tensors);
    }
  }
}

}  // namespace

void run_instruction(const Instruction& instruction, SlotTensors& tensors) {
  const auto& parameters = instruction.op.schema().arguments();
  torch::jit::Stack stack;
  for (size_t i = 0; i < instruction.arguments.size(); ++i) {
    stack.push_back(value_of(instruction.arguments[i], parameters[i].type(), tensors));
  }
  const c10::AutoGradMode mode(instruction.needs_grad_mode);
  instruction.op.callBoxed(&stack);
  for (size_t i = 0; i < instruction.results.size(); ++i) {
    take(stack[i], instruction.results[i], tensors);
  }
}

}  // namespace rondo
