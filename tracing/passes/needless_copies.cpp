#include <array>
#include <string>
#include <utility>

#include "tracing/passes/passes.h"
#include "tracing/program/storages.h"

namespace rondo {

namespace {

bool is_copy(const StepProgram& program, const Instruction& instruction) {
  const std::string& name = instruction.op.schema().name();
  if (name != "aten::clone" && name != "aten::_to_copy" && name != "aten::lift_fresh_copy") {
    return false;
  }
  const Slot& from = slot_of(program, instruction.arguments[0].slots[0]);
  const Slot& to = slot_of(program, instruction.results[0].slots[0]);
  return from.dtype == to.dtype && from.sizes == to.sizes && from.strides == to.strides &&
         from.offset == to.offset && from.is_wrapped_number == to.is_wrapped_number;
}

}  // namespace

StepProgram remove_needless_copies(StepProgram program) {
  std::vector<bool> keep(program.instructions.size(), true);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    if (!is_copy(program, program.instructions[i])) {
      continue;
    }
    const SlotId from = program.instructions[i].arguments[0].slots[0];
    const SlotId to = program.instructions[i].results[0].slots[0];
    const StorageFacts facts(program);
    const size_t source = storage_of(program, from);
    const size_t copy = storage_of(program, to);
    // Handed out, a copy stays one: whoever gets it may write into it.
    const bool is_needless = facts.writes[copy].empty() && !facts.escapes[copy] &&
                             !facts.is_written(source, i, program.instructions.size());
    if (is_needless) {
      replace_slot(program, to, from);
      keep[i] = false;
    }
  }
  keep_instructions(program, keep);
  return program;
}

}  // namespace rondo
