#pragma once

#include <string>

#include "tracing/program/step_program.h"

namespace rondo {

/// How two recordings of one step differ.
struct ProgramDifference {
  std::string
      text;  ///< with the operator, its argument and where it ran; "" when they do not differ

  /// True when a constant, frozen bytes or a shape differ: a host value is baked. False when
  /// operators or the tensors that they use do, as when state is made in the first step.
  bool is_value = false;
};

/// Compares two recordings of one step: operators, which tensors they use, constants (exactly),
/// shapes, frozen bytes, outputs, closures. What a step bakes into its program and should not have
/// shows here. \return the first difference
ProgramDifference first_difference(const StepProgram& first, const StepProgram& second);

}  // namespace rondo
