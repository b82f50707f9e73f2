#pragma once

#include <string>
#include <vector>

#include "tracing/program/step_program.h"

namespace rondo {

/// The program that runs the step gives each input as an array of its own, which stays as it is.
/// \throws NotSupportedError  naming the input that it cannot give so
void refuse_odd_inputs(const StepProgram& program);

/// What the guards of a program read. A file has no step as it is written: where a guard fails,
/// nothing may have been changed.
/// \throws NotSupportedError  when something is written before it is read
std::vector<std::string> reads_of(const StepProgram& program);

}  // namespace rondo
