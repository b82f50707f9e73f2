#pragma once

#include <cstdint>

namespace rondo {

// Loops over elements, compiled for the widest instruction set of the machine. Files that use them
// are compiled with -ffp-contract=off, so that each instruction set gives the same bits. Element
// functions are RONDO_INLINE and call nothing but builtins: an inline function of another header
// would be compiled with instructions that the machine may lack.

#define RONDO_INLINE inline __attribute__((always_inline))

/// The same for a lambda: `[=](int64_t i) RONDO_INLINE_LAMBDA { … }`.
#define RONDO_INLINE_LAMBDA __attribute__((always_inline))

/// Elements do not depend on each other, even where an array is written over another one: without
/// knowing that, a compiler would take such a loop element by element.
#if defined(__clang__)
#define RONDO_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define RONDO_INDEPENDENT _Pragma("GCC ivdep")
#endif

/// AVX-512 was tried for optimizers and gains nothing: roots, divisions and memory set the pace.
enum class InstructionSet { Baseline, Avx2 };

#if defined(__x86_64__)

/// The widest one that this machine has.
inline InstructionSet widest_instruction_set() {
  static const InstructionSet widest =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? InstructionSet::Avx2
                                                                      : InstructionSet::Baseline;
  return widest;
}

#define RONDO_AVX2 __attribute__((target("avx2,fma")))

#else

inline InstructionSet widest_instruction_set() {
  return InstructionSet::Baseline;
}

#define RONDO_AVX2

#endif

namespace detail {

template <class Element>
void baseline_loop(Element element, int64_t count) {
  RONDO_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    element(i);
  }
}

template <class Element>
RONDO_AVX2 void avx2_loop(Element element, int64_t count) {
  RONDO_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    element(i);
  }
}

}  // namespace detail

/// Calls `element(i)` for each i below `count`, in any order.
template <class Element>
void vector_loop(Element element, int64_t count, InstructionSet set = widest_instruction_set()) {
  if (set == InstructionSet::Avx2) {
    detail::avx2_loop(element, count);
  } else {
    detail::baseline_loop(element, count);
  }
}

}  // namespace rondo
