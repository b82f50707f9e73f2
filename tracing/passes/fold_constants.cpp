#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <ATen/core/stack.h>
#include <ATen/ops/empty_strided.h>

#include "tracing/passes/passes.h"
#include "tracing/program/kernels_only.h"
#include "tracing/program/storages.h"

namespace rondo {

namespace {

// What they return follows from shapes and numbers alone.
constexpr std::array<std::string_view, 8> kFoldable = {"aten::ones_like",
                                                       "aten::zeros_like",
                                                       "aten::full_like",
                                                       "aten::ones",
                                                       "aten::zeros",
                                                       "aten::full",
                                                       "aten::scalar_tensor",
                                                       "aten::arange"};

// Constants live as long as the program: larger ones are cheaper made anew in the arena.
constexpr int64_t kMaxBytes = 1 << 20;

bool follows_from_shapes(const Instruction& instruction) {
  return std::find(kFoldable.begin(), kFoldable.end(), instruction.op.schema().name()) !=
         kFoldable.end();
}

// Of constants that nothing changes, such as a backward's first gradient divided by the number of
// micro-batches. A view of one costs nothing as it is. An operator of somebody else's may depend on
// more than its arguments.
bool follows_from_constants(const StepProgram& program,
                            const StorageFacts& facts,
                            const Instruction& instruction) {
  if (instruction.op.schema().name().rfind("aten::", 0) != 0) {
    return false;
  }
  bool has_tensor = false;
  for (const Argument& argument : instruction.arguments) {
    if (argument.kind == Argument::Kind::Constant) {
      continue;
    }
    if (argument.kind == Argument::Kind::TensorList || argument.slots[0] == kNoTensor) {
      return false;
    }
    const size_t storage = storage_of(program, argument.slots[0]);
    if (slot_of(program, argument.slots[0]).kind != SlotKind::Constant ||
        !facts.writes[storage].empty() || facts.escapes[storage] ||
        storage == storage_of(program, instruction.results[0].slots[0])) {
      return false;
    }
    has_tensor = true;
  }
  return has_tensor && !instruction.is_allocation;
}

bool has_plain_result(const Instruction& instruction) {
  return instruction.results.size() == 1 && instruction.results[0].kind == Argument::Kind::Tensor &&
         instruction.results[0].slots[0] != kNoTensor;
}

bool is_foldable(const StepProgram& program,
                 const StorageFacts& facts,
                 const Instruction& instruction) {
  if (!is_pure(instruction) || !has_plain_result(instruction)) {
    return false;
  }
  const Slot& result = slot_of(program, instruction.results[0].slots[0]);
  const int64_t bytes = numel(result) * static_cast<int64_t>(c10::elementSize(result.dtype));
  const auto storage = static_cast<size_t>(result.storage);
  return facts.writes[storage].empty() && !facts.escapes[storage] && bytes <= kMaxBytes &&
         (follows_from_shapes(instruction) || follows_from_constants(program, facts, instruction));
}

at::Tensor evaluate(const StepProgram& program, const Instruction& instruction) {
  const KernelsOnly scope;
  torch::jit::Stack stack;
  for (const Argument& argument : instruction.arguments) {
    if (argument.kind == Argument::Kind::Constant) {
      stack.push_back(argument.constant);
    } else {
      const Slot& like = slot_of(program, argument.slots[0]);
      stack.emplace_back(
          like.kind == SlotKind::Constant
              ? like.value
              : at::empty_strided(
                    like.sizes, like.strides, at::TensorOptions(like.dtype).device(like.device)));
    }
  }
  instruction.op.callBoxed(&stack);
  return stack.back().toTensor();
}

// A number of the host among the arguments may count as a tensor here.
bool is_as_recorded(const Slot& slot, const at::Tensor& value) {
  return value.scalar_type() == slot.dtype && value.sizes() == slot.sizes &&
         value.strides() == slot.strides;
}

// What only other constants followed from would be kept for as long as the program.
void drop_unused(StepProgram& program) {
  const std::vector<bool> used = used_slots(program);
  for (size_t i = 0; i < used.size(); ++i) {
    Slot& slot = program.slots[i];
    if (!used[i] && slot.kind == SlotKind::Constant) {
      slot.kind = SlotKind::Produced;
      slot.value.reset();
    }
  }
}

}  // namespace

StepProgram fold_constants(StepProgram program) {
  const StorageFacts facts(program);
  std::vector<bool> keep(program.instructions.size(), true);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (is_foldable(program, facts, instruction)) {
      Slot& slot = program.slots[static_cast<size_t>(instruction.results[0].slots[0])];
      at::Tensor value = evaluate(program, instruction);
      if (is_as_recorded(slot, value)) {
        slot.value = std::move(value);
        slot.kind = SlotKind::Constant;
        keep[i] = false;
      }
    }
  }
  keep_instructions(program, keep);
  drop_unused(program);
  return program;
}

}  // namespace rondo
