#include "core/openblas_core.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

TEST_SUITE_BEGIN("core/openblas_core");

using namespace rondo;

TEST_CASE("a processor that OpenBLAS knows needs no other name") {
  for (const char* core : {"", "Haswell", "SkylakeX", "Zen", "Cooperlake", "ARMV8"}) {
    CHECK(better_openblas_core(core) == "");
  }
}

TEST_CASE("only kernels that the processor can run are named") {
#ifdef __x86_64__
  const std::string better = better_openblas_core("Prescott");
  CHECK(better.empty() == !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")));
  CHECK((better != "SkylakeX" || __builtin_cpu_supports("avx512f")));
#endif
}

TEST_CASE("a library that is no OpenBLAS has no core") {
  void* const library = ::dlopen("libm.so.6", RTLD_LAZY);
  REQUIRE(library != nullptr);
  CHECK(openblas_core(library) == "");
  CHECK(openblas_core(nullptr) == "");
  ::dlclose(library);
}

TEST_SUITE_END();
