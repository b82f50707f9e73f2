#include "backends/blas_advice.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <mutex>
#include <set>

#include "core/blas_library.h"
#include "core/openblas_core.h"

namespace rondo {

BlasFacts blas_facts(void* library) {
  BlasFacts facts;
  if (library == nullptr) {
    return facts;
  }
  const auto has = [library](const char* function) {
    return ::dlsym(library, function) != nullptr;
  };
  const bool is_openblas = has("openblas_get_config");
  // An MKL inside of LibTorch has only the functions that LibTorch calls.
  const bool is_mkl = has("MKL_Get_Version") || has("cblas_sgemm_pack");
  facts.is_optimized = is_openblas || is_mkl || has("bli_info_get_version_str");
  if (is_openblas) {
    // 0: sequential, 1: threads of its own, 2: OpenMP, which LibTorch uses as well.
    const auto parallel = reinterpret_cast<int (*)()>(::dlsym(library, "openblas_get_parallel"));
    facts.has_own_threads = parallel != nullptr && parallel() == 1;
    facts.better_core = better_openblas_core(openblas_core(library));
  }
  return facts;
}

std::string blas_advice(const BlasFacts& facts, int threads) {
  if (!facts.is_optimized) {
    return "LibTorch runs on the reference BLAS, whose matrix products are some ten times slower "
           "than need be: install libopenblas0-openmp";
  }
  if (!facts.better_core.empty()) {
    return fmt::format(
        "this OpenBLAS does not know the processor and takes it for one of 2004, some three times "
        "slower than need be: set OPENBLAS_CORETYPE={} in the environment, or install a newer one",
        facts.better_core);
  }
  if (facts.has_own_threads && threads > 1) {
    return "OpenBLAS has its own threads next to those of LibTorch, and both wait for the same "
           "cores: install libopenblas0-openmp, or set backend.threads = 1";
  }
  return "";
}

void warn_of_blas(int threads, const TextLog& log) {
  static std::mutex mutex;
  static std::set<std::string> told;
  const std::string advice = blas_advice(blas_facts(blas_library().handle), threads);
  const std::lock_guard lock(mutex);
  if (!advice.empty() && told.insert(advice).second) {
    log.warning(advice);
  }
}

}  // namespace rondo
