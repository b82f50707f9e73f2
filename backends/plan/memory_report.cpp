#include "backends/plan/memory_report.h"

#include <algorithm>
#include <numeric>

#include "backends/plan/kernels/lstm_shape.h"
#include "backends/program/arguments.h"
#include "backends/program/image.h"
#include "backends/recording/lstm_arguments.h"

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

// What a layer of LSTM keeps of inputs that repeat. A file may hold tensors of any shape.
int64_t bytes_of_distinct(const Slot* x, const Slot* states) {
  if (x == nullptr || x->sizes.size() != 3 || states == nullptr || states->sizes.empty()) {
    return 0;
  }
  const LstmShape shape = {x->sizes[0], x->sizes[1], x->sizes[2], states->sizes.back()};
  return shape.most_distinct() * (shape.inputs + shape.row_of_gates()) * int64_t{sizeof(float)};
}

// Of the inputs that a layer's gradient looks up in its table, and of their gradient.
int64_t bytes_looked_up(const StepProgram& program, const std::vector<Argument>& arguments) {
  const Slot* const table = slot_at(program, arguments, lstm_backward::X);
  const Slot* const numbers = slot_at(program, arguments, lstm_backward::kNumbers);
  if (table == nullptr || table->sizes.size() != 2 || numbers == nullptr) {
    return 0;
  }
  return 2 * numel(*numbers) * table->sizes[1] * int64_t{sizeof(float)};
}

// What operators that stand for several take from LibTorch's allocator while they run, besides
// their results: see recording/fused_operators.cpp and lstm_operators.cpp. Images in blocks are
// copied to be computed on.
int64_t bytes_inside(const Plan& plan, const Instruction& instruction) {
  const std::string name = operator_name(instruction.op);
  const auto bytes_of = [&](const Argument& argument) {
    const Slot* const tensor = slot_at(plan.program, {argument}, 0);
    return tensor == nullptr ? 0 : numel(*tensor) * int64_t(c10::elementSize(tensor->dtype));
  };
  const auto copy_of = [&](const Argument& argument) {
    const Slot* const image = slot_at(plan.program, {argument}, 0);
    return image != nullptr && block_of(*image) > 0 ? bytes_of(argument) : 0;
  };
  const std::vector<Argument>& arguments = instruction.arguments;
  const std::vector<Result>& results = instruction.results;
  if (name == "rondo::mm_to_") {
    return bytes_of(arguments[0]);
  }
  if (name == "rondo::cross_entropy_backward") {
    return bytes_of(results[0]);
  }
  if (name == "rondo::convolution") {
    return copy_of(arguments[0]) + copy_of(results[0]);
  }
  if (name == "rondo::batch_norm") {
    return copy_of(arguments[0]);
  }
  if (name == "rondo::convolution_backward" || name == "rondo::batch_norm_backward") {
    return copy_of(arguments[0]) + copy_of(arguments[1]);
  }
  if (name == "rondo::batch_norm_relu_pool") {
    const int64_t index_bytes = 8 * bytes_of(results[1]);
    return bytes_of(arguments[0]) +
           std::max(copy_of(arguments[0]), index_bytes + copy_of(results[0]));
  }
  if (name == "rondo::lstm_layer") {
    using namespace lstm_forward;
    const int64_t packed = bytes_of(arguments[InputWeight]) + bytes_of(arguments[StateWeight]);
    return packed + bytes_of_distinct(slot_at(plan.program, arguments, X),
                                      slot_at(plan.program, arguments, States));
  }
  if (name == "rondo::lstm_layer_backward" || name == "rondo::lstm_table_backward") {
    using namespace lstm_backward;
    const int64_t packed = bytes_of(arguments[InputWeight]) + bytes_of(arguments[StateWeight]);
    const int64_t gradients_of_gates =
        bytes_of(arguments[Kept]) / LstmShape::kKept * LstmShape::kGates;
    const int64_t zeros = is_none(arguments[Dy]) ? bytes_of(arguments[Y]) : 0;
    return packed + gradients_of_gates + zeros +
           (name == "rondo::lstm_table_backward" ? bytes_looked_up(plan.program, arguments) : 0);
  }
  if (name == "rondo::batch_norm_relu_pool_backward") {
    return bytes_of(arguments[2]) + copy_of(arguments[0]) + copy_of(arguments[2]);
  }
  return 0;
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
