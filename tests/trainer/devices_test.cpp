// Whole runs on devices that are not the CPU: on CUDA where it is, and on a device of the tests'
// own.

#include <doctest/doctest.h>
#include <torch/types.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "models/builtin/mlp.h"
#include "optim/adam.h"
#include "optim/lion.h"
#include "optim/schedulers.h"
#include "optim/sgd.h"
#include "support/every_model.h"
#include "support/every_optimizer.h"
#include "support/fake_device.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

bool has_cuda() {
  if (!at::hasCUDA()) {
    MESSAGE("skipped: no CUDA");
  }
  return at::hasCUDA();
}

/// RONDO_TEST_DEVICES=cuda leaves the tests' own device out.
std::vector<std::string> devices() {
  std::vector<std::string> names;
  const char* const wanted = std::getenv("RONDO_TEST_DEVICES");
  if (wanted != nullptr && std::string(wanted) == "cuda") {
    MESSAGE("skipped: the simulated device");
  } else if (has_fake_device()) {
    names.emplace_back("fake");
  } else {
    MESSAGE("skipped: LibTorch before 2.4 has no devices of a program's own");
  }
  if (has_cuda()) {
    names.emplace_back("cuda");
  }
  return names;
}

/// With dropout, whose numbers the device draws.
TrainerOptions run_on(const std::string& device,
                      const std::filesystem::path& model_dir,
                      const Factory<Optimizer>& optimizer) {
  Mlp::Options model;
  model.sizes = {4, 16, 3};
  model.input = "x";
  model.dropout = 0.5;
  TrainerOptions options = tiny_options(model_dir);
  options.model = use<Mlp>(model);
  options.optimizer = optimizer;
  options.backend.device = device;
  options.loop.max_steps = 12;
  options.loop.grad_accum_steps = 2;
  options.loop.eval_frequency = 5;
  options.precision.max_gradient_norm = 0.1;
  options.sparsity.sparsity = 0.5;
  options.checkpoint.steps = 6;
  return options;
}

CosineDecayLR::Options cosine() {
  CosineDecayLR::Options options;
  options.initial_learning_rate = 0.1;
  options.end_learning_rate = 0.01;
  options.total_iters = 12;
  return options;
}

StateDict bits_after(const TrainerOptions& options) {
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train", 20), {tiny_loader("val", 6)});
  return bits_of(trainer);
}

Factory<Optimizer> momentum() {
  Sgd::Options sgd;
  sgd.lr = 0.1;
  sgd.momentum = 0.9;
  return use<Sgd>(sgd);
}

/// Bits after some updates of a model, with dropout.
StateDict bits_after_model(const ModelOnData& subject, TrainerOptions options) {
  const TempDir dir;
  options.model_dir = dir / "run";
  options.model = subject.model(0.2);
  options.loop.max_steps = 6;
  options.checkpoint.steps = 0;
  LoaderOptions batches;
  batches.batch_size = 3;
  Trainer trainer(options, quiet_log());
  trainer.fit(DataLoader("train", subject.data(), batches));
  return bits_of(trainer);
}

void check_traced_equals_eager(const ModelOnData& subject, TrainerOptions options) {
  CAPTURE(subject.name);
  CAPTURE(options.backend.device);
  CAPTURE(options.precision.dtype);
  CAPTURE(options.optimizer.name());
  const StateDict eager = bits_after_model(subject, options);
  options.backend.mode = "traced";
  CHECK(first_difference(eager, bits_after_model(subject, options)) == "");
}

}  // namespace

TEST_SUITE_BEGIN("trainer/devices");

TEST_CASE("a run on a device that is resumed equals the uninterrupted one, bit for bit") {
  for (const std::string& device : devices()) {
    for (const char* mode : {"eager", "traced"}) {
      for (const Factory<Optimizer>& optimizer :
           {momentum(), Factory<Optimizer>(use<AdamW>({1e-2}))}) {
        CAPTURE(device);
        CAPTURE(mode);
        CAPTURE(optimizer.name());
        const TempDir dir;
        TrainerOptions options = run_on(device, dir / "straight", optimizer);
        options.backend.mode = mode;
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
}

TEST_CASE("a traced run on a device equals the eager one, bit for bit, with its schedule") {
  for (const std::string& device : devices()) {
    CAPTURE(device);
    const TempDir dir;
    TrainerOptions options = run_on(device, dir / "eager", momentum());
    options.schedulers = {use<CosineDecayLR>(cosine())};
    const StateDict eager = bits_after(options);
    options.model_dir = dir / "traced";
    options.backend.mode = "traced";
    CHECK(first_difference(eager, bits_after(options)) == "");
  }
}

TEST_CASE("a traced run on a device equals the eager one, bit for bit, for every optimizer") {
  for (const std::string& device : devices()) {
    for (const RegisteredOptimizer& optimizer : every_optimizer()) {
      CAPTURE(device);
      CAPTURE(optimizer.name);
      CAPTURE(optimizer.keys);
      const TempDir dir;
      TrainerOptions options = run_on(device, dir / "eager", optimizer.factory);
      const StateDict eager = bits_after(options);
      options.model_dir = dir / "traced";
      options.backend.mode = "traced";
      CHECK(first_difference(eager, bits_after(options)) == "");
    }
  }
}

TEST_CASE("a traced run on a device equals the eager one, bit for bit, for every model") {
  for (const std::string& device : devices()) {
    for (const ModelOnData& subject : every_model()) {
      check_traced_equals_eager(subject, run_on(device, "", use<AdamW>({1e-2})));
    }
  }
}

TEST_CASE("a traced run on CUDA equals the eager one, bit for bit, in every precision") {
  if (!has_cuda()) {
    return;
  }
  for (const ModelOnData& subject : every_model()) {
    if (!subject.is_basic) {
      continue;
    }
    for (const Factory<Optimizer>& optimizer :
         {momentum(), Factory<Optimizer>(use<AdamW>({1e-2})), Factory<Optimizer>(use<Lion>({}))}) {
      for (const char* precision : {"fp32", "bf16", "fp16"}) {
        TrainerOptions options = run_on("cuda", "", optimizer);
        options.precision.dtype = precision;
        check_traced_equals_eager(subject, options);
      }
    }
  }
}

TEST_CASE("a checkpoint of another device is refused until the environment may be new") {
  for (const std::string& device : devices()) {
    CAPTURE(device);
    const TempDir dir;
    TrainerOptions options = run_on("cpu", dir / "run", momentum());
    options.loop.max_steps = 6;
    bits_after(options);
    options.backend.device = device;
    options.loop.max_steps = 12;
    std::string refusal;
    try {
      bits_after(options);
    } catch (const std::exception&) {
      refusal = describe(std::current_exception());
    }
    CAPTURE(refusal);
    CHECK(refusal.find("gpu: none in the checkpoint") != std::string::npos);
    options.backend.environment = "new";
    CHECK_NOTHROW(bits_after(options));
  }
}

TEST_CASE("bf16 on CUDA gives the forward pass bfloat16, traced as well") {
  if (!has_cuda()) {
    return;
  }
  const TempDir dir;
  TrainerOptions options = run_on("cuda", dir / "fp32", momentum());
  const StateDict exact = bits_after(options);
  options.model_dir = dir / "bf16";
  options.precision.dtype = "bf16";
  const StateDict rounded = bits_after(options);
  CHECK(first_difference(exact, rounded) != "");
  options.model_dir = dir / "traced";
  options.backend.mode = "traced";
  CHECK(first_difference(rounded, bits_after(options)) == "");
}

TEST_SUITE_END();
