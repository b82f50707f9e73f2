#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "tracing/plan/plan_memory.h"
#include "tracing/program/step_program.h"

namespace rondo {

/// The tensors of a plan that an instruction gives to its operator, which must leave their shapes
/// and their memory as they are. LibTorch changes a tensor's shape first and asks for memory then:
/// a tensor that was refused more memory reaches beyond what it has until it is put back.
class GivenTensors {
 public:
  GivenTensors(const Instruction& instruction, const PlanMemory& memory);

  /// Restores those that the operator changed. \return whether there were none
  bool put_back() const;

 private:
  const PlanMemory& memory_;
  std::vector<SlotId> slots_;  // each once
};

/// While it lives, LibTorch refuses to resize the storages of some tensors.
class FixedStorages {
 public:
  explicit FixedStorages(const std::vector<at::Tensor>& tensors);
  FixedStorages(const FixedStorages&) = delete;
  FixedStorages& operator=(const FixedStorages&) = delete;
  ~FixedStorages();

 private:
  std::vector<c10::Storage> storages_;  // that can be resized otherwise
};

}  // namespace rondo
