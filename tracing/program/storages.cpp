#include "tracing/program/storages.h"

#include <algorithm>
#include <utility>

namespace rondo {

StorageFacts::StorageFacts(const StepProgram& program) {
  const auto count = static_cast<size_t>(program.storages);
  is_external.resize(count, false);
  escapes.resize(count, false);
  writes.resize(count);
  for (const Slot& slot : program.slots) {
    if (slot.kind != SlotKind::Produced) {
      is_external[static_cast<size_t>(slot.storage)] = true;
    }
  }
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    for (const SlotId slot : program.instructions[i].writes) {
      writes[storage_of(program, slot)].push_back(i);
    }
  }
  for (const auto& output : program.outputs) {
    escapes[storage_of(program, output.second)] = true;
  }
  for (const ClosureOutput& closure : program.closures) {
    for (const SlotId slot : closure.tensors) {
      escapes[storage_of(program, slot)] = true;
    }
  }
}

bool StorageFacts::is_written(size_t storage, size_t from, size_t to) const {
  const std::vector<size_t>& places = writes[storage];
  const auto next = std::upper_bound(places.begin(), places.end(), from);
  return next != places.end() && *next <= to;
}

bool any_in_storage(const StepProgram& program,
                    const std::vector<Argument>& tensors,
                    size_t storage) {
  bool found = false;
  for_each_slot(tensors,
                [&](SlotId slot) { found = found || storage_of(program, slot) == storage; });
  return found;
}

bool touches(const StepProgram& program, const Instruction& instruction, const Slot& slot) {
  bool found = instruction.is_opaque;
  // Gradients of all parameters may share one storage: what counts is whether they share bytes.
  const auto look = [&](SlotId other) {
    found = found || may_share_bytes(slot_of(program, other), slot);
  };
  for_each_slot(instruction.arguments, look);
  for_each_slot(instruction.results, look);
  return found;
}

void replace_slot(StepProgram& program, SlotId from, SlotId to) {
  const int32_t old_storage = slot_of(program, from).storage;
  const int32_t new_storage = slot_of(program, to).storage;
  for (Slot& slot : program.slots) {
    if (slot.storage == old_storage) {
      slot.storage = new_storage;
    }
  }
  const auto rename = [&](std::vector<SlotId>& slots) {
    std::replace(slots.begin(), slots.end(), from, to);
  };
  for (Instruction& instruction : program.instructions) {
    for (Argument& argument : instruction.arguments) {
      rename(argument.slots);
    }
    for (Result& result : instruction.results) {
      rename(result.slots);
    }
    rename(instruction.writes);
  }
  for (auto& output : program.outputs) {
    output.second = output.second == from ? to : output.second;
  }
  for (ClosureOutput& closure : program.closures) {
    rename(closure.tensors);
  }
}

void keep_instructions(StepProgram& program, const std::vector<bool>& keep) {
  std::vector<Instruction> kept;
  for (size_t i = 0; i < keep.size(); ++i) {
    if (keep[i]) {
      kept.push_back(std::move(program.instructions[i]));
    }
  }
  program.instructions = std::move(kept);
}

}  // namespace rondo
