#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "tracing/program/step_program.h"

namespace rondo::test {

/// Instructions of an operator, whatever its overload.
inline int64_t count(const StepProgram& program, const std::string& op) {
  return std::count_if(program.instructions.begin(),
                       program.instructions.end(),
                       [&](const Instruction& i) { return i.op.schema().name() == op; });
}

}  // namespace rondo::test
