#include "core/openblas_core.h"

#include <dlfcn.h>

namespace rondo {

std::string openblas_core(void* library) {
  if (library == nullptr) {  // which dlsym takes for all that are loaded
    return "";
  }
  const auto core_name = reinterpret_cast<char* (*)()>(::dlsym(library, "openblas_get_corename"));
  return core_name == nullptr ? "" : core_name();
}

std::string better_openblas_core(const std::string& core) {
#ifdef __x86_64__
  if (core != "Prescott") {
    return "";
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return "SkylakeX";
  }
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "Haswell" : "";
#else
  static_cast<void>(core);
  return "";
#endif
}

}  // namespace rondo
