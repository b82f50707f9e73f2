#include "backends/numeric_environment.h"

#include <doctest/doctest.h>
#include <torch/types.h>
#include <torch/version.h>

#include "core/error.h"

TEST_SUITE_BEGIN("backends/numeric_environment");

using namespace rondo;

TEST_CASE("the environment of this process is known") {
  const NumericEnvironment environment = current_environment();
  CHECK(environment.libtorch == TORCH_VERSION);
  CHECK(environment.threads == at::get_num_threads());
  CHECK_FALSE(environment.cpu_capability.empty());
  CHECK_FALSE(environment.blas.empty());
  CHECK(environment.onednn == at::globalContext().userEnabledMkldnn());
}

TEST_CASE("an environment survives a state dictionary") {
  const NumericEnvironment saved = current_environment();
  CHECK(difference(saved, environment_from(to_state(saved))) == "");
  CHECK_THROWS_AS(environment_from({}), CheckpointError);
}

TEST_CASE("the kernels of OpenBLAS are compared where a checkpoint tells them") {
  const NumericEnvironment here = current_environment();
  NumericEnvironment saved = here;
  saved.blas_core = "Z80";
  CHECK(difference(saved, here).find("Z80") != std::string::npos);
  saved.blas_core = "";
  CHECK(difference(saved, here) == "");
}

TEST_CASE("a GPU is compared, and an environment of before GPUs were kept has none") {
  const NumericEnvironment here = current_environment();
  CHECK(here.gpu == "");
  NumericEnvironment saved = here;
  saved.gpu = "Z80";
  CHECK(difference(saved, here) == "gpu: Z80 in the checkpoint, none here");
  StateDict of_before;
  for (const auto& [name, value] : to_state(here).items()) {
    if (name != "gpu") {
      of_before.set(name, value);
    }
  }
  CHECK(difference(environment_from(of_before), here) == "");
}

TEST_CASE("a difference names what differs and both values, and nothing else") {
  const NumericEnvironment here = current_environment();
  NumericEnvironment saved = here;
  saved.threads = here.threads + 7;
  saved.cpu_capability = "Z80";
  const std::string text = difference(saved, here);
  CHECK(text.find("threads") != std::string::npos);
  CHECK(text.find(std::to_string(here.threads + 7)) != std::string::npos);
  CHECK(text.find("Z80") != std::string::npos);
  CHECK(text.find("blas") == std::string::npos);
}

TEST_SUITE_END();
