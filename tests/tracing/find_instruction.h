#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "tracing/program/step_program.h"

namespace rondo::test {

/// The first instruction that calls `op`; the test fails when there is none.
inline const Instruction& find(const StepProgram& program, std::string_view op) {
  for (const Instruction& instruction : program.instructions) {
    if (operator_name(instruction.op) == op) {
      return instruction;
    }
  }
  FAIL("no " << std::string(op));
  return program.instructions.front();
}

}  // namespace rondo::test
