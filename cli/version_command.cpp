#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <torch/version.h>

#include <climits>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "cli/commands.h"
#include "core/openblas_core.h"
#include "core/version.h"

namespace rondo {

namespace {

/// Keeps the path of a loaded library that is a BLAS. \return non-zero to end the walk
int keep_blas(dl_phdr_info* library, size_t, void* found) {
  const std::string_view path = library->dlpi_name;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  if (file.substr(0, 10) != "libblas.so") {
    return 0;
  }
  *static_cast<std::string*>(found) = path;
  return 1;
}

/// Which BLAS the system's loader chose, links followed: it decides the last bits of results and
/// much of the speed.
std::string loaded_blas() {
  std::string path;
  ::dl_iterate_phdr(keep_blas, &path);
  char resolved[PATH_MAX];
  return ::realpath(path.c_str(), resolved) != nullptr ? resolved : "inside LibTorch";
}

/// " (Haswell)" for an OpenBLAS that uses the kernels for it.
std::string chosen_kernels() {
  const std::string core = openblas_core(RTLD_DEFAULT);
  return core.empty() ? "" : fmt::format(" ({})", core);
}

}  // namespace

int run_version(const CommandLine&, Registries&) {
  std::cout << fmt::format("rondo {}\nLibTorch {}\nBLAS {}{}\nthreads {}\ncompiler {}\n",
                           kVersion,
                           TORCH_VERSION,
                           loaded_blas(),
                           chosen_kernels(),
                           at::get_num_threads(),
                           __VERSION__);
  return 0;
}

}  // namespace rondo
