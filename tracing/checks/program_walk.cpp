#include "tracing/checks/program_walk.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "tracing/program/run_instruction.h"
#include "tracing/program/storages.h"

namespace rondo {

ProgramWalk::ProgramWalk(const StepProgram& program,
                         const Batch& batch,
                         const std::vector<char>& answers)
    : answers_(answers), tensors_(program.slots.size()) {
  for (size_t i = 0; i < program.slots.size(); ++i) {
    const Slot& slot = program.slots[i];
    if (slot.kind == SlotKind::Input) {
      tensors_[i] = batch[slot.name];
    } else if (slot.kind != SlotKind::Produced) {
      tensors_[i] = slot.value;
    }
  }
}

void ProgramWalk::execute(const Instruction& instruction) {
  if (is_host_call(instruction)) {
    give_answers(instruction);
    return;
  }
  run_instruction(instruction, tensors_);
}

// What the host wrote when the step ran.
void ProgramWalk::give_answers(const Instruction& instruction) {
  for (const SlotId id : instruction.arguments.back().slots) {
    const at::Tensor& target = tensor(id);
    const at::Tensor answer =
        at::empty(target.sizes(), target.options().device(at::kCPU).pinned_memory(false));
    if (answered_ + answer.nbytes() > answers_.size()) {
      throw CaptureError("a host call of the step was not kept");
    }
    std::memcpy(answer.data_ptr(), answers_.data() + answered_, answer.nbytes());
    answered_ += answer.nbytes();
    target.copy_(answer);
  }
}

std::vector<SlotId> written_slots(const Instruction& instruction) {
  std::vector<SlotId> written = instruction.writes;
  for_each_slot(instruction.results, [&](SlotId id) {
    if (std::find(written.begin(), written.end(), id) == written.end()) {  // not in place
      written.push_back(id);
    }
  });
  return written;
}

}  // namespace rondo
