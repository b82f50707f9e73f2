#pragma once

#if defined(__x86_64__)

#include <dlfcn.h>

#include <cstdint>

#include "tracing/kernels/avx512.h"

namespace rondo {

/// Of sixteen numbers.
using SleefFunction = __m512 (*)(__m512);

/// A function of the Sleef that LibTorch was linked with, such as "Sleef_expf16_u10"; null when
/// LibTorch hides it, or this machine cannot run it.
inline SleefFunction find_sleef(const char* name) {
  return has_avx512() ? reinterpret_cast<SleefFunction>(::dlsym(RTLD_DEFAULT, name)) : nullptr;
}

/// \param to  has room for whole vectors
RONDO_AVX512 inline void apply(SleefFunction function,
                               const float* from,
                               float* to,
                               int64_t count) {
  int64_t i = 0;
  for (; i + kWide <= count; i += kWide) {
    _mm512_storeu_ps(to + i, function(_mm512_loadu_ps(from + i)));
  }
  if (i < count) {
    const auto left = static_cast<__mmask16>((1U << (count - i)) - 1);
    _mm512_storeu_ps(to + i, function(_mm512_maskz_loadu_ps(left, from + i)));
  }
}

}  // namespace rondo

#endif
