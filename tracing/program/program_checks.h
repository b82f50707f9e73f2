#pragma once

#include "tracing/program/step_program.h"

namespace rondo {

/// That a program, wherever it comes from, does not reach beside its memory when it is run: every
/// tensor is made before it is used, lies inside of its storage, and is as large as operators that
/// do not look take for granted.
/// \param program  whose numbers of slots and storages are in range, and whose values have the
///                 shapes of their slots
/// \throws CheckpointError  naming the instruction or tensor, and what is wrong with it
void check_program(const StepProgram& program);

}  // namespace rondo
