#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#define RONDO_AVX512 __attribute__((target("avx512f,avx512dq,avx2,fma")))

/// Before a loop of at most sixteen rounds over registers, which otherwise lie in memory.
#define RONDO_UNROLLED _Pragma("GCC unroll 16")

namespace rondo {

/// Numbers of a register.
using Floats = __m512;
inline constexpr int kWide = 16;

/// All lanes of a register. Said to GCC 12, which warns of undefined elements that the functions
/// without a mask ignore.
inline constexpr __mmask16 kAll = 0xFFFF;
inline constexpr __mmask8 kAllDoubles = 0xFF;

/// Whether this machine can run what is compiled with RONDO_AVX512.
inline bool has_avx512() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0;
}

}  // namespace rondo

#endif
