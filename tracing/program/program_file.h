#pragma once

#include <map>
#include <string>

#include "core/state_dict.h"
#include "tracing/program/step_program.h"

namespace rondo {

/// The captured tensors of programs, by the names under which a file holds them.
using ProgramState = std::map<std::string, at::Tensor>;

/// A program as plain values for a file, without its closures, places of code and live tensors.
/// Captured tensors are named, and added to `state`: one tensor has one name in all programs.
/// \throws NotSupportedError  for an argument that cannot be written down, naming the operator
StateDict to_state(const StepProgram& program, ProgramState& state);

/// The program that `to_state` wrote, on the tensors of `state`. Operators are looked up by name in
/// the dispatcher. Every number is checked that indexes or measures memory.
/// \throws CheckpointError    for anything that `to_state` does not write
/// \throws NotSupportedError  when LibTorch has no such operator, naming it
StepProgram program_from(const StateDict& saved, const ProgramState& state);

}  // namespace rondo
