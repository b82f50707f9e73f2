#pragma once

#include "tracing/program/step_program.h"

namespace rondo::test {

/// A kernel's answer that it can compute every instruction.
inline bool takes_all(const StepProgram&, const Instruction&) {
  return true;
}

}  // namespace rondo::test
