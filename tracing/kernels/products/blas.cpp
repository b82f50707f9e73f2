#include "tracing/kernels/products/blas.h"

#include <dlfcn.h>

namespace rondo::blas {

Sgemm sgemm() {
  static const auto found = reinterpret_cast<Sgemm>(::dlsym(RTLD_DEFAULT, "sgemm_"));
  return found;
}

OneDnnSgemm onednn_sgemm() {
  static const auto found = reinterpret_cast<OneDnnSgemm>(::dlsym(RTLD_DEFAULT, "dnnl_sgemm"));
  return found;
}

}  // namespace rondo::blas
