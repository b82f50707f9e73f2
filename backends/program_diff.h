#pragma once

#include <string>

#include "backends/step_program.h"

namespace rondo {

/// Compares two recordings of one step: operators, which tensors they use, constants (exactly),
/// shapes, frozen bytes, outputs, closures. What a step bakes into its program and should not have
/// shows here. \return the first difference, with the operator, its argument and where it ran; ""
/// when there is none
std::string first_difference(const StepProgram& first, const StepProgram& second);

}  // namespace rondo
