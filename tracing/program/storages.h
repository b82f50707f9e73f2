#pragma once

#include <cstddef>
#include <vector>

#include "tracing/program/guards.h"
#include "tracing/program/step_program.h"

namespace rondo {

/// What happens to each storage of a program, by its number.
struct StorageFacts {
  std::vector<bool> is_external;            ///< batch, captured or constant: not made by the step
  std::vector<bool> escapes;                ///< an output or a closure sees it
  std::vector<std::vector<size_t>> writes;  ///< instructions that write it, ascending

  explicit StorageFacts(const StepProgram& program);

  /// Whether an instruction after `from`, and before or at `to`, writes the storage.
  bool is_written(size_t storage, size_t from, size_t to) const;
};

inline const Slot& slot_of(const StepProgram& program, SlotId slot) {
  return program.slots[static_cast<size_t>(slot)];
}

inline size_t storage_of(const StepProgram& program, SlotId slot) {
  return static_cast<size_t>(slot_of(program, slot).storage);
}

/// \param op  with overload, such as "aten::add.Tensor"
inline bool has_name(const Instruction& instruction, const char* op) {
  return operator_name(instruction.op) == op;
}

/// True for what a step asks the host to do: `Backend::host_call`.
inline bool is_host_call(const Instruction& instruction) {
  return has_name(instruction, "rondo::host_call");
}

/// True when nothing but its results matters of an instruction.
inline bool is_pure(const Instruction& instruction) {
  return instruction.writes.empty() && !instruction.draws_random && !instruction.is_opaque &&
         !is_guard(instruction);
}

/// Whether one of the tensors lies in the storage.
/// \param tensors  of an instruction: arguments or results
bool any_in_storage(const StepProgram& program,
                    const std::vector<Argument>& tensors,
                    size_t storage);

/// Whether an instruction may read or write bytes of a slot.
bool touches(const StepProgram& program, const Instruction& instruction, const Slot& slot);

/// Everything that named `from` names `to`; views of one become views of the other. Both must hold
/// the same bytes at the same offset.
void replace_slot(StepProgram& program, SlotId from, SlotId to);

/// Drops the instructions that are not kept.
void keep_instructions(StepProgram& program, const std::vector<bool>& keep);

}  // namespace rondo
