#include "backends/blas_advice.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "core/blas_library.h"

TEST_SUITE_BEGIN("backends/blas_advice");

using namespace rondo;

TEST_CASE("a slow BLAS is named with the package that cures it") {
  CHECK(blas_advice({/*is_optimized=*/false, false, ""}, 1).find("libopenblas0-openmp") !=
        std::string::npos);
}

TEST_CASE("an OpenBLAS that does not know the processor is told what it may take it for") {
  CHECK(blas_advice({true, false, "SkylakeX"}, 1).find("OPENBLAS_CORETYPE=SkylakeX") !=
        std::string::npos);
}

TEST_CASE("two pools of threads matter when there are threads") {
  CHECK(blas_advice({true, /*has_own_threads=*/true, ""}, 1).empty());
  CHECK(blas_advice({true, /*has_own_threads=*/true, ""}, 2).find("threads") != std::string::npos);
  CHECK(blas_advice({true, false, ""}, 8).empty());
}

TEST_CASE("what there is to say of this process is said once") {
  std::string said;
  const TextLog log = TextLog::to([&](LogLevel, std::string_view text) { said += text; });
  warn_of_blas(1, log);
  said.clear();
  warn_of_blas(1, log);
  CHECK(said.empty());
}

TEST_CASE("the BLAS of this process can be looked at") {
  const BlasFacts facts = blas_facts(blas_library().handle);
  CHECK((facts.is_optimized || !facts.has_own_threads));
}

TEST_CASE("a library is judged by itself, not by an OpenBLAS that is loaded beside it") {
  void* const library = ::dlopen("libm.so.6", RTLD_LAZY);
  REQUIRE(library != nullptr);
  CHECK_FALSE(blas_facts(library).is_optimized);
  CHECK(blas_facts(nullptr).is_optimized);
  ::dlclose(library);
}

TEST_SUITE_END();
