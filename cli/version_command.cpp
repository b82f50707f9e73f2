#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <iostream>
#include <string>

#include "cli/commands.h"
#include "core/blas_library.h"
#include "core/openblas_core.h"
#include "core/version.h"

namespace rondo {

namespace {

/// The BLAS that products run by: it decides the last bits of results and much of the speed. Behind
/// an OpenBLAS the processor whose kernels it uses, as in " (Haswell)".
std::string blas_in_use() {
  const BlasLibrary& blas = blas_library();
  const std::string core = openblas_core(blas.handle);
  return (blas.path.empty() ? "inside LibTorch" : blas.path) +
         (core.empty() ? "" : fmt::format(" ({})", core));
}

}  // namespace

int run_version(const CommandLine&, Registries&) {
  std::cout << fmt::format("rondo {}\nLibTorch {}\nBLAS {}\nthreads {}\ncompiler {}\n",
                           kVersion,
                           TORCH_VERSION,
                           blas_in_use(),
                           at::get_num_threads(),
                           __VERSION__);
  return 0;
}

}  // namespace rondo
