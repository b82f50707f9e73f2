#include "backends/plan/kernels/blas.h"

#include <dlfcn.h>

namespace rondo::blas {

Sgemm sgemm() {
  static const auto found = reinterpret_cast<Sgemm>(::dlsym(RTLD_DEFAULT, "sgemm_"));
  return found;
}

}  // namespace rondo::blas
