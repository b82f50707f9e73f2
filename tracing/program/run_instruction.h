#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "tracing/program/step_program.h"

namespace rondo {

/// The tensors of a program by their slots; undefined where there is none (yet).
using SlotTensors = std::vector<at::Tensor>;

/// Calls an instruction's operator on the tensors of its slots, and takes its results where a slot
/// has no tensor yet.
void run_instruction(const Instruction& instruction, SlotTensors& tensors);

}  // namespace rondo
