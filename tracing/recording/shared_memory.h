#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <string>
#include <utility>
#include <vector>

#include "tracing/program/step_program.h"

namespace rondo {

/// State of which some bytes are those of an entry of the batch, and whether the step writes them:
/// a program would not know that writing one changes the other, nor which of them is meant where
/// they are one.
class SharedMemory {
 public:
  explicit SharedMemory(const StepProgram& program) : program_(program) {}

  void add_input(SlotId slot, const at::Tensor& tensor);

  /// \param slot  of the state
  void add_state(const std::string& name, SlotId slot, const at::Tensor& tensor);

  /// A tensor that is both.
  void add_input_of_state(const std::string& name, SlotId input);

  /// \throws Objection  when the program writes such memory
  void object_to_writes() const;

 private:
  struct Shared {
    std::string state;
    SlotId slot;
    SlotId input;
  };

  const Slot& slot_at(SlotId id) const { return program_.slots[static_cast<size_t>(id)]; }

  std::pair<const char*, const char*> bytes_of(SlotId id, const c10::Storage& in) const;

  const StepProgram& program_;
  std::vector<std::pair<SlotId, c10::Storage>> inputs_;
  std::vector<Shared> shared_;
};

}  // namespace rondo
