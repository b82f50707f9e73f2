#include "tracing/recording/guard_rules.h"

#include <set>
#include <string>

#include "tracing/recording/objection.h"

namespace rondo {

namespace {

std::string text_of(const RecordedCall& read) {
  return "read a tensor on the host (" + read.name + ")";
}

}  // namespace

void object_to_late_read(const RecordedCall& read, const StepProgram& program, SlotTable& table) {
  constexpr int64_t kMostBytes = int64_t{16} << 20;
  std::set<SlotId> written;
  int64_t bytes = 0;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.is_opaque) {
      throw Objection{
          text_of(read) + " after " + operator_name(instruction.op) + ", which cannot be undone",
          "read it before that"};
    }
    for (const SlotId id : instruction.writes) {
      if (table.storage_of(id).kind != SlotKind::Produced && written.insert(id).second) {
        const Slot& slot = program.slots[static_cast<size_t>(id)];
        bytes += numel(slot) * static_cast<int64_t>(c10::elementSize(slot.dtype));
      }
    }
  }
  if (bytes > kMostBytes) {
    throw Objection{text_of(read) + " after the step had written " + std::to_string(bytes >> 20) +
                        " MiB of its state, of which each replay would need a copy",
                    "read it before the update"};
  }
}

void object_to_read_of_constant(const RecordedCall& read, SlotTable& table) {
  for_each_slot(read.arguments, [&](SlotId slot) {
    if (table.storage_of(slot).kind == SlotKind::Constant) {
      throw Objection{text_of(read) + " that was made outside of the step",
                      "make it a buffer of the model, or state of the optimizer or callback"};
    }
  });
}

}  // namespace rondo
