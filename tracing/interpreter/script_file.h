#pragma once

#include <string>

#include "tracing/program/step_program.h"

namespace rondo {

/// A program as a TorchScript module, in the bytes of its file, which `torch.jit.load` and a
/// ScriptModel read. Captured tensors are its parameters, under the names of the program without
/// "model."; its forward takes the program's inputs in order, and returns the output, or a
/// dictionary where there are several. \throws NotSupportedError  for a program with operators that
/// LibTorch alone does not have, or that
///                            writes what it captured
std::string to_script_file(const StepProgram& program);

}  // namespace rondo
