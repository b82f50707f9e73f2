#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "core/tensor_map.h"
#include "tracing/program/step_program.h"

namespace rondo {

/// Runs a program instruction by instruction, as it was recorded: each operator by LibTorch, into
/// memory of its own. Captured state is written in place. Use it within `KernelsOnly`.
class ProgramWalk {
 public:
  /// \param batch    of the structure that was recorded; shares the tensors
  /// \param answers  what the step's host calls left in their tensors, in order; both outlive it
  ProgramWalk(const StepProgram& program, const Batch& batch, const std::vector<char>& answers);

  /// Undefined until an instruction has made it.
  const at::Tensor& tensor(SlotId slot) const { return tensors_[static_cast<size_t>(slot)]; }

  /// \throws CaptureError  when the answer of a host call is missing
  void execute(const Instruction& instruction);

 private:
  void give_answers(const Instruction& instruction);

  const std::vector<char>& answers_;
  std::vector<at::Tensor> tensors_;  // one a slot, once it is there
  size_t answered_ = 0;              // bytes of the answers that were given
};

/// The slots that an instruction gives new bytes, each once.
std::vector<SlotId> written_slots(const Instruction& instruction);

}  // namespace rondo
