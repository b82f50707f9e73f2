#include "tracing/plan/memory_report.h"

#include <algorithm>
#include <numeric>

#include "core/operator_facts.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

size_t storage_of(const Slot& slot) {
  return static_cast<size_t>(slot.storage);
}

// The bytes in a home at each instruction, and behind the last one.
std::vector<int64_t> bytes_in_time(const Plan& plan, Home home) {
  std::vector<int64_t> changes(plan.program.instructions.size() + 2, 0);
  for (size_t i = 0; i < plan.storages.size(); ++i) {
    const PlannedStorage& storage = plan.storages[i];
    if (storage.home == home && storage.memory == i && storage.first != kNeverUsed) {
      changes[storage.first] += storage.bytes;
      changes[storage.last + 1] -= storage.bytes;
    }
  }
  std::partial_sum(changes.begin(), changes.end(), changes.begin());
  return changes;
}

TensorShape shape_of(const StepProgram& program, const Argument& argument) {
  const Slot* const tensor = slot_at(program, {argument}, 0);
  return tensor == nullptr ? TensorShape() : TensorShape{true, tensor->dtype, tensor->sizes};
}

template <class Tensors>
std::vector<TensorShape> shapes_of(const StepProgram& program, const Tensors& tensors) {
  std::vector<TensorShape> shapes;
  for (const auto& tensor : tensors) {
    shapes.push_back(shape_of(program, tensor));
  }
  return shapes;
}

// What an operator takes from LibTorch's allocator while it runs, besides its results.
int64_t bytes_inside(const Plan& plan, const Instruction& instruction) {
  const OperatorFacts* const facts = find_operator_facts(operator_name(instruction.op));
  return facts == nullptr || !facts->scratch_bytes
             ? 0
             : facts->scratch_bytes(shapes_of(plan.program, instruction.arguments),
                                    shapes_of(plan.program, instruction.results));
}

// A trial counts by itself what an operator without results takes.
int64_t bytes_of_trial(const Plan& plan, const PlannedInstruction& planned) {
  const Instruction& instruction = plan.program.instructions[planned.index];
  const int64_t inside = instruction.results.empty() ? 0 : bytes_inside(plan, instruction);
  return planned.trial->bytes() + inside;
}

// Which results live in the arena when it holds the most.
std::vector<InstructionBytes> fullest_moment(const Plan& plan) {
  const std::vector<int64_t> bytes = bytes_in_time(plan, Home::Arena);
  const auto moment =
      static_cast<size_t>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
  std::vector<InstructionBytes> results;
  for (size_t i = 0; i < plan.storages.size(); ++i) {
    const PlannedStorage& storage = plan.storages[i];
    const bool lives = storage.first <= moment && moment <= storage.last;
    if (storage.home == Home::Arena && storage.memory == i && lives) {
      const Instruction& maker = plan.program.instructions[storage.first];
      results.push_back({operator_name(maker.op), module_of(plan.program, maker), storage.bytes});
    }
  }
  return results;
}

// The name of a storage that is the same in all steps, whatever order they use its tensors in.
std::string first_name_of(const StepProgram& program, const Slot& of) {
  std::string first = of.name;
  for (const Slot& slot : program.slots) {
    if (slot.kind == SlotKind::Captured && slot.storage == of.storage) {
      first = std::min(first, slot.name);
    }
  }
  return first;
}

}  // namespace

StepMemory memory_of(const Plan& plan) {
  StepMemory memory;
  const std::vector<int64_t> adopted = bytes_in_time(plan, Home::Adopted);
  memory.fullest = fullest_moment(plan);
  bool is_behind_opaque = false;  // where nothing is tried before the first replay
  for (const PlannedInstruction& planned : plan.instructions) {
    memory.of_kernels += planned.kernel->bytes();
    is_behind_opaque = is_behind_opaque || (plan.program.instructions[planned.index].is_opaque &&
                                            planned.lowering != Lowering::InPlace);
    const int64_t inside = planned.lowering == Lowering::Own
                               ? 0
                               : bytes_inside(plan, plan.program.instructions[planned.index]);
    memory.adopted = std::max(memory.adopted, adopted[planned.index] + inside);
    if (planned.trial != nullptr) {
      const int64_t trial = adopted[planned.index] + bytes_of_trial(plan, planned);
      memory.trial = std::max(memory.trial, trial);
      const bool is_late = planned.trials > 1 || is_behind_opaque;
      memory.late_trial = std::max(memory.late_trial, is_late ? trial : 0);
    }
  }
  memory.arena = plan.memory->arena_bytes_taken() + memory.of_kernels;
  std::vector<bool> is_counted(plan.storages.size(), false);
  for (const Slot& slot : plan.program.slots) {
    const PlannedStorage& storage = plan.storages[storage_of(slot)];
    if (slot.kind == SlotKind::Produced || storage.first == kNeverUsed ||
        is_counted[storage_of(slot)]) {
      continue;
    }
    is_counted[storage_of(slot)] = true;
    if (slot.kind == SlotKind::Captured) {
      memory.captured.push_back(
          {first_name_of(plan.program, slot), static_cast<int64_t>(slot.value.storage().nbytes())});
    } else {
      (slot.kind == SlotKind::Input ? memory.inputs : memory.constants) += storage.bytes;
    }
  }
  return memory;
}

}  // namespace rondo
