#include <algorithm>
#include <utility>

#include "tracing/passes/passes.h"
#include "tracing/program/storages.h"

namespace rondo {

namespace {

// Walks backwards over a program and knows what the instructions after the current one need.
class Liveness {
 public:
  Liveness(const StepProgram& program, const std::vector<bool>& due)
      : program_(program),
        facts_(program),
        slots_(program.slots.size(), false),
        storages_(static_cast<size_t>(program.storages), false) {
    for (const auto& output : program.outputs) {
      need(output.second);
    }
    for (size_t i = 0; i < due.size(); ++i) {
      if (due[i]) {
        const std::vector<SlotId>& tensors = program.closures[i].tensors;
        std::for_each(tensors.begin(), tensors.end(), [&](SlotId slot) { need(slot); });
      }
    }
  }

  bool is_needed(const Instruction& instruction) const {
    if (instruction.draws_random || instruction.is_opaque || is_guard(instruction)) {
      return true;
    }
    bool needed = false;
    for (const SlotId slot : instruction.writes) {
      const size_t storage = storage_of(program_, slot);
      needed = needed || facts_.is_external[storage] || storages_[storage];
    }
    for_each_slot(instruction.results,
                  [&](SlotId slot) { needed = needed || slots_[static_cast<size_t>(slot)]; });
    return needed;
  }

  void need(SlotId slot) {
    slots_[static_cast<size_t>(slot)] = true;
    storages_[storage_of(program_, slot)] = true;
  }

 private:
  const StepProgram& program_;
  StorageFacts facts_;
  std::vector<bool> slots_;
  std::vector<bool> storages_;
};

}  // namespace

std::vector<bool> needed_instructions(const StepProgram& program, const std::vector<bool>& due) {
  Liveness live(program, due);
  std::vector<bool> needed(program.instructions.size(), false);
  for (size_t i = program.instructions.size(); i-- > 0;) {
    const Instruction& instruction = program.instructions[i];
    needed[i] = live.is_needed(instruction);
    if (needed[i]) {
      for_each_slot(instruction.arguments, [&](SlotId slot) { live.need(slot); });
    }
  }
  return needed;
}

StepProgram remove_dead_code(StepProgram program) {
  const std::vector<bool> all(program.closures.size(), true);
  keep_instructions(program, needed_instructions(program, all));
  return program;
}

}  // namespace rondo
