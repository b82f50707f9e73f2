#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <string>
#include <unordered_map>

#include "tracing/program/step_program.h"

namespace rondo {

/// Notes where each instruction of a recording comes from: forward, backward or update, and the
/// call stack of the forward code (of the code whose gradient it computes, for backward). Used
/// while capturing only.
class OriginTracker {
 public:
  /// Gives an instruction that is about to be appended its origin.
  void note(StepProgram& program, Instruction& instruction);

  /// The origin of the operator whose gradient a node computes; 0: not known.
  /// \param sequence_number  autograd's, of the node
  int32_t forward_of(int64_t sequence_number) const;

 private:
  std::unordered_map<int64_t, int32_t> forward_;  // origin by autograd's sequence number
  bool has_gone_back_ = false;
};

/// While it lives, this thread knows which node of autograd's graph is computed.
class BackwardWatch {
 public:
  BackwardWatch();
  BackwardWatch(const BackwardWatch&) = delete;
  BackwardWatch& operator=(const BackwardWatch&) = delete;
  ~BackwardWatch();

 private:
  at::CallbackHandle handle_;
};

/// Fills in the modules of a recorded program's origins, from the names of the state that
/// instructions read: what reads "model.net.0.weight" is of module "net.0"; what reads no
/// parameter is "after" the module whose result it works on.
void find_modules(StepProgram& program);

}  // namespace rondo
