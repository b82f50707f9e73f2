#include "trainer/exportable_program.h"

#include <fmt/format.h>

#include <map>

#include "core/error.h"
#include "tracing/program/guards.h"
#include "tracing/program/storages.h"

namespace rondo {

void refuse_odd_inputs(const StepProgram& program) {
  if (const SlotId written = written_input(program); written != kNoTensor) {
    throw NotSupportedError(fmt::format(
        "the step writes its input \"{}\", which belongs to the program that runs it; let the "
        "model work on a copy (clone)",
        program.slots[static_cast<size_t>(written)].name));
  }
  std::map<int32_t, std::string> names;  // by storage
  for (const Slot& slot : program.slots) {
    if (slot.kind != SlotKind::Input) {
      continue;
    }
    if (!is_contiguous(slot)) {
      throw NotSupportedError(
          fmt::format("input \"{}\" of the step is not contiguous; batches of an exported step are",
                      slot.name));
    }
    if (const auto [known, is_new] = names.emplace(slot.storage, slot.name); !is_new) {
      throw NotSupportedError(
          fmt::format("inputs \"{}\" and \"{}\" of the step share memory; let the data set copy "
                      "one of them (clone)",
                      known->second,
                      slot.name));
    }
  }
}

std::vector<std::string> reads_of(const StepProgram& program) {
  const StorageFacts facts(program);
  const std::vector<StepGuard> guards = guards_of(program);
  std::vector<std::string> reads;
  bool has_written = false;
  for (const Instruction& instruction : program.instructions) {
    if (is_guard(instruction)) {
      reads.push_back(guards[reads.size()].read);
      if (has_written) {
        throw NotSupportedError(fmt::format(
            "the step reads a value on the host ({}) after it has changed its state; an exported "
            "step could not be undone there: read it before the first change",
            reads.back()));
      }
    }
    for (const SlotId slot : instruction.writes) {
      has_written = has_written || facts.is_external[storage_of(program, slot)];
    }
  }
  return reads;
}

}  // namespace rondo
