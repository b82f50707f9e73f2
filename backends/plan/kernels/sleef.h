#pragma once

#if defined(__x86_64__)

#include <dlfcn.h>

#include "backends/plan/kernels/avx512.h"

namespace rondo {

/// Of sixteen numbers.
using SleefFunction = __m512 (*)(__m512);

/// A function of the Sleef that LibTorch was linked with, such as "Sleef_expf16_u10"; null when
/// LibTorch hides it, or this machine cannot run it.
inline SleefFunction find_sleef(const char* name) {
  return has_avx512() ? reinterpret_cast<SleefFunction>(::dlsym(RTLD_DEFAULT, name)) : nullptr;
}

}  // namespace rondo

#endif
