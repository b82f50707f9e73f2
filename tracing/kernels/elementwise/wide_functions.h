#pragma once

#if defined(__x86_64__)

#include <memory>
#include <optional>

#include "tracing/kernels/avx512.h"
#include "tracing/kernels/elementwise/rows_kernel.h"
#include "tracing/kernels/own_kernels.h"
#include "tracing/program/arguments.h"

namespace rondo {

// Kernels made of functions that give sixteen floats for sixteen of their one or two arguments:
// `static Floats Function::of(Floats)` or `of(Floats, Floats)`, compiled with RONDO_AVX512.

/// The loops of a function of one vector, or of two.
template <class Function>
struct WideLoop {
  RONDO_AVX512 static void run(float* y, const float* x, int64_t count) {
    for (int64_t i = 0; i < count; i += kWide) {
      _mm512_storeu_ps(y + i, Function::of(_mm512_loadu_ps(x + i)));
    }
  }

  RONDO_AVX512 static void run(float* y, const float* a, const float* b, int64_t count) {
    for (int64_t i = 0; i < count; i += kWide) {
      _mm512_storeu_ps(y + i, Function::of(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i)));
    }
  }
};

/// Only whole vectors: LibTorch computes what is left over by other functions.
inline std::optional<Rows> wide_rows(const StepProgram& program,
                                     const Instruction& instruction,
                                     size_t inputs) {
  const auto rows = float_rows(program, instruction, inputs);
  return rows && rows->width % kWide == 0 ? rows : std::nullopt;
}

template <class Function>
std::unique_ptr<Kernel> make_wide_unary(const StepProgram& program,
                                        const Instruction& instruction,
                                        const Operands& memory) {
  return std::make_unique<UnaryKernel<WideLoop<Function>>>(
      memory.operand(id_at(instruction.arguments, 0)),
      memory.operand(id_at(instruction.results, 0)),
      *wide_rows(program, instruction, 1));
}

template <class Function>
std::unique_ptr<Kernel> make_wide_binary(const StepProgram& program,
                                         const Instruction& instruction,
                                         const Operands& memory) {
  return std::make_unique<BinaryKernel<WideLoop<Function>>>(
      memory.operand(id_at(instruction.arguments, 0)),
      memory.operand(id_at(instruction.arguments, 1)),
      memory.operand(id_at(instruction.results, 0)),
      *wide_rows(program, instruction, 2));
}

}  // namespace rondo

#endif
