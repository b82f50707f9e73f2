#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <ATen/core/stack.h>
#include <ATen/ops/empty_strided.h>

#include "backends/kernels_only.h"
#include "backends/passes/passes.h"
#include "backends/passes/storages.h"

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

bool is_foldable(const StepProgram& program,
                 const StorageFacts& facts,
                 const Instruction& instruction) {
  const bool is_known =
      std::find(kFoldable.begin(), kFoldable.end(), instruction.op.schema().name()) !=
      kFoldable.end();
  if (!is_known || !is_pure(instruction) || instruction.results.size() != 1 ||
      instruction.results[0].kind != Argument::Kind::Tensor) {
    return false;
  }
  const Slot& result = slot_of(program, instruction.results[0].slots[0]);
  int64_t bytes = static_cast<int64_t>(c10::elementSize(result.dtype));
  for (const int64_t size : result.sizes) {
    bytes *= size;
  }
  const auto storage = static_cast<size_t>(result.storage);
  return facts.writes[storage].empty() && !facts.escapes[storage] && bytes <= kMaxBytes;
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
          at::empty_strided(like.sizes, like.strides, at::TensorOptions().dtype(like.dtype)));
    }
  }
  instruction.op.callBoxed(&stack);
  return stack.back().toTensor();
}

}  // namespace

StepProgram fold_constants(StepProgram program) {
  const StorageFacts facts(program);
  std::vector<bool> keep(program.instructions.size(), true);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (is_foldable(program, facts, instruction)) {
      Slot& slot = program.slots[static_cast<size_t>(instruction.results[0].slots[0])];
      slot.value = evaluate(program, instruction);
      slot.kind = SlotKind::Constant;
      keep[i] = false;
    }
  }
  keep_instructions(program, keep);
  return program;
}

}  // namespace rondo
