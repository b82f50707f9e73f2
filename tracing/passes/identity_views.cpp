#include <utility>

#include "tracing/passes/passes.h"
#include "tracing/program/storages.h"

namespace rondo {

// A slot is a way to see memory. An instruction that only gives slots that are there already does
// nothing.
StepProgram remove_identity_views(StepProgram program) {
  std::vector<bool> is_defined;
  for (const Slot& slot : program.slots) {
    is_defined.push_back(slot.kind != SlotKind::Produced);
  }
  std::vector<bool> keep;
  for (const Instruction& instruction : program.instructions) {
    bool gives_new = false;
    for_each_slot(instruction.results, [&](SlotId slot) {
      gives_new = gives_new || !is_defined[static_cast<size_t>(slot)];
      is_defined[static_cast<size_t>(slot)] = true;
    });
    keep.push_back(gives_new || !is_pure(instruction) || instruction.results.empty());
  }
  keep_instructions(program, keep);
  return program;
}

}  // namespace rondo
