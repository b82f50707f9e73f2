#include "core/blas_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace rondo {

namespace {

BlasLibrary find() {
  void* const function = ::dlsym(RTLD_DEFAULT, "sgemm_");
  Dl_info info{};
  if (function == nullptr || ::dladdr(function, &info) == 0 || info.dli_fname == nullptr) {
    return {};
  }
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(info.dli_fname, error);
  return {error ? "" : file.string(), ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)};
}

}  // namespace

const BlasLibrary& blas_library() {
  static const BlasLibrary found = find();
  return found;
}

}  // namespace rondo
