#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#define RONDO_AVX512 __attribute__((target("avx512f,avx512dq,avx2,fma")))

namespace rondo {

/// Whether this machine can run what is compiled with RONDO_AVX512.
inline bool has_avx512() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0;
}

}  // namespace rondo

#endif
