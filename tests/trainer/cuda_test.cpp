#include <doctest/doctest.h>
#include <torch/types.h>

#include <exception>
#include <filesystem>

#include "core/error.h"
#include "models/mlp.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

bool skips_without_cuda() {
  if (at::hasCUDA()) {
    return false;
  }
  MESSAGE("skipped: no CUDA");
  return true;
}

/// With dropout, whose numbers the device draws.
TrainerOptions on_cuda(const std::filesystem::path& model_dir,
                       const Factory<Optimizer>& optimizer) {
  Mlp::Options model;
  model.sizes = {4, 16, 3};
  model.input = "x";
  model.dropout = 0.5;
  TrainerOptions options = tiny_options(model_dir);
  options.model = use<Mlp>(model);
  options.optimizer = optimizer;
  options.backend.device = "cuda";
  options.loop.max_steps = 12;
  options.loop.grad_accum_steps = 2;
  options.loop.eval_frequency = 5;
  options.precision.max_gradient_norm = 0.1;
  options.sparsity.sparsity = 0.5;
  options.checkpoint.steps = 6;
  return options;
}

StateDict bits_after(const TrainerOptions& options) {
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train", 20), {tiny_loader("val", 6)});
  return bits_of(trainer);
}

}  // namespace

TEST_SUITE_BEGIN("trainer/cuda");

TEST_CASE("a run on CUDA that is resumed equals the uninterrupted one, bit for bit") {
  if (skips_without_cuda()) {
    return;
  }
  Sgd::Options sgd;
  sgd.lr = 0.1;
  sgd.momentum = 0.9;
  for (const Factory<Optimizer>& optimizer :
       {Factory<Optimizer>(use<Sgd>(sgd)), Factory<Optimizer>(use<AdamW>({1e-2}))}) {
    for (const char* dtype : {"fp32", "bf16"}) {
      CAPTURE(optimizer.name());
      CAPTURE(dtype);
      const TempDir dir;
      TrainerOptions options = on_cuda(dir / "straight", optimizer);
      options.precision.dtype = dtype;
      const StateDict straight = bits_after(options);
      options.model_dir = dir / "resumed";
      options.loop.max_steps = 6;
      bits_after(options);
      torch::manual_seed(123);  // numbers of the process are not the run's
      options.loop.max_steps = 12;
      CHECK(first_difference(straight, bits_after(options)) == "");
    }
  }
}

TEST_CASE("bf16 on CUDA gives the forward pass bfloat16") {
  if (skips_without_cuda()) {
    return;
  }
  const TempDir dir;
  TrainerOptions options = on_cuda(dir / "fp32", use<Sgd>({0.1}));
  const StateDict exact = bits_after(options);
  options.model_dir = dir / "bf16";
  options.precision.dtype = "bf16";
  CHECK(first_difference(exact, bits_after(options)) != "");
}

TEST_CASE("a step on CUDA is not recorded yet: traced is refused") {
  if (skips_without_cuda()) {
    return;
  }
  const TempDir dir;
  TrainerOptions options = on_cuda(dir / "run", use<Sgd>({0.1}));
  options.backend.mode = "traced";
  try {
    const Trainer trainer(options, quiet_log());
    FAIL("built");
  } catch (const HookError& error) {
    CHECK_THROWS_AS(std::rethrow_if_nested(error), NotSupportedError);
  }
}

TEST_SUITE_END();
