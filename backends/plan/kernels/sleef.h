#pragma once

#if defined(__x86_64__)

#include <dlfcn.h>
#include <immintrin.h>

#define RONDO_AVX512 __attribute__((target("avx512f,avx512dq,avx2,fma")))

namespace rondo {

/// Of sixteen numbers.
using SleefFunction = __m512 (*)(__m512);

/// A function of the Sleef that LibTorch was linked with, such as "Sleef_expf16_u10"; null when
/// LibTorch hides it, or this machine cannot run it.
inline SleefFunction find_sleef(const char* name) {
  const bool can_run =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0;
  return can_run ? reinterpret_cast<SleefFunction>(::dlsym(RTLD_DEFAULT, name)) : nullptr;
}

}  // namespace rondo

#endif
