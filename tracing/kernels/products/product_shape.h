#pragma once

#include <optional>

#include "tracing/kernels/products/gemm.h"
#include "tracing/program/step_program.h"

namespace rondo {

/// How BLAS is asked for result = a · b, in single precision; nothing where it cannot be. A result
/// that lies row after row is the transposed product, b^T · a^T, to a library that counts by
/// columns: so does LibTorch ask for it, and another form would round otherwise. So `b` is the
/// first factor, and `a` the second.
/// \param result, a, b  may be null
std::optional<GemmShape> product_of(const Slot* result, const Slot* a, const Slot* b);

/// The same for rondo::mm_to_(target, a, b, adds).
std::optional<GemmShape> product_added_to(const StepProgram& program,
                                          const Instruction& instruction);

}  // namespace rondo
