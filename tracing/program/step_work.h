#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>

#include "tracing/program/step_program.h"

namespace rondo {

/// Floating-point operations by the type of number; a multiplication and an addition are two.
using Flops = std::map<c10::ScalarType, double>;

/// What one run of a step asks of the machine.
struct StepWork {
  Flops flops;
  double bytes = 0.0;  ///< that its operators read and write
};

/// What many runs asked.
struct WorkDone {
  Flops flops;
  double bytes = 0.0;

  void add(const StepWork& step, int64_t runs);
  void add(const WorkDone& other);

  /// All types together.
  double all_flops() const;
};

/// Of products, convolutions, attention and recurrent layers; everything else counts 0, as is usual
/// for the utilisation of a machine.
/// Source: torch.utils.flop_counter.
double flops_of(const StepProgram& program, const Instruction& instruction);

/// Of all instructions of a program as it was recorded, before passes fuse them.
Flops flops_of(const StepProgram& program);

/// Bytes of the arguments and results, each once.
int64_t bytes_of(const StepProgram& program, const Instruction& instruction);

/// Bytes that the instructions of a program read and write. Views and allocations move none. Caches
/// serve a part of it.
double bytes_moved(const StepProgram& program);

}  // namespace rondo
