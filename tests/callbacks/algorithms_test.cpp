// What algorithms share: matching before each step, the step's key, checkpoints, config.

#include <ATen/TensorOperators.h>
#include <doctest/doctest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <exception>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "callbacks/algorithm.h"
#include "callbacks/algorithms/algorithms.h"
#include "callbacks/core/algorithms_callback.h"
#include "core/error.h"
#include "data/tensor_dataset.h"
#include "models/builtin/mlp.h"
#include "models/from_module.h"
#include "support/builtins.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr int64_t kUpdates = 12;

/// Acts in every third update.
class EveryThird final : public Algorithm {
 public:
  bool match(Event event, const State& state) const override {
    return event == Event::BeforeForward && state.timestamp.update % 3 == 2;
  }

  void apply(Event, Trainer& trainer) override {
    Batch& batch = *trainer.state().batch;
    batch.set("x", batch["x"].mul(2.0));
  }
};

/// Changes the model, it says.
class Surgery final : public Algorithm {
 public:
  bool match(Event event, const State&) const override { return event == Event::Init; }

  void apply(Event, Trainer&) override {}

  bool required_on_load() const override { return true; }
};

int64_t trained_steps(const Trainer& trainer) {
  int64_t count = 0;
  for (const StepReport& report : trainer.state().backend->reports()) {
    count += report.name.rfind("train", 0) == 0 ? 1 : 0;
  }
  return count;
}

/// Takes pictures and sequences of any size: a product with the mean of all values of a sample.
struct MeanOfValues final : torch::nn::Module {
  MeanOfValues() : linear(register_module("linear", torch::nn::Linear(1, 3))) {}

  at::Tensor forward(const at::Tensor& values) {
    return linear(values.to(at::kFloat).flatten(1).mean(1, /*keepdim=*/true));
  }

  torch::nn::Linear linear;
};

DataLoader sequences() {
  LoaderOptions loader;
  loader.batch_size = 4;
  const at::Tensor tokens = at::arange(12 * 16).remainder(7).reshape({12, 16});
  return DataLoader(
      "train", from_tensors({{"tokens", tokens}, {"label", at::arange(12).remainder(3)}}), loader);
}

DataLoader pictures(const char* label) {
  LoaderOptions loader;
  loader.batch_size = 4;
  const at::Tensor image = at::arange(12 * 64, at::kFloat).sin().reshape({12, 1, 8, 8});
  return DataLoader(
      label, from_tensors({{"image", image}, {"label", at::arange(12).remainder(3)}}), loader);
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/algorithms");

TEST_CASE("an algorithm that matches every third update: traced equals eager, with two keys") {
  const TempDir dir;
  const auto fit = [&](const char* mode, int64_t steps) {
    TrainerOptions options = tiny_options(dir / mode);
    options.backend.mode = mode;
    options.loop.max_steps = 30;
    options.loop.eval_frequency = 0;
    options.algorithms = {use<EveryThird>()};
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    CHECK(trained_steps(trainer) == steps);
    const auto& traces = trainer.slot<AlgorithmsCallback>().traces();
    REQUIRE(traces.size() == 1);
    CHECK(traces[0].algorithm == "EveryThird");
    CHECK(traces[0].event == Event::BeforeForward);
    return bits_of(trainer);
  };
  const StateDict eager = fit("eager", 0);
  CHECK(first_difference(eager, fit("traced", 2)) == "");
}

TEST_CASE("two algorithms that exclude each other are refused") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.algorithms = {use<MixUp>(), use<CutMix>()};
  try {
    const Trainer trainer(options, quiet_log());
    FAIL("nothing was thrown");
  } catch (const std::exception&) {
    const std::string told = describe(std::current_exception());
    CHECK(told.find("MixUp") != std::string::npos);
    CHECK(told.find("CutMix") != std::string::npos);
  }
}

TEST_CASE("C65: a checkpoint names the algorithms that changed its model, and needs them") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.algorithms = {use<Surgery>()};
  options.loop.max_steps = 2;
  Trainer(options, quiet_log()).fit(tiny_loader("train"));
  options.loop.max_steps = 4;
  options.algorithms = {};
  {
    Trainer without(options, quiet_log());
    try {
      without.fit(tiny_loader("train"));
      FAIL("nothing was thrown");
    } catch (const HookError&) {
      const std::string told = describe(std::current_exception());
      CHECK(told.find("Surgery") != std::string::npos);
      CHECK(told.find("exclude_algorithms") != std::string::npos);
    }
  }
  options.checkpoint.load.exclude_algorithms = {"Surgery"};
  Trainer excluding(options, quiet_log());
  excluding.fit(tiny_loader("train"));
  CHECK(excluding.state().global_step() == 4);
}

TEST_CASE("with algorithms that change the size of samples traced equals eager, too") {
  SeqLengthWarmup::Options warmup;
  warmup.duration = 0.5;
  warmup.max_seq_length = 16;
  warmup.step_size = 4;
  ProgressiveResizing::Options resizing;
  resizing.size_increment = 2;
  const auto fit = [](const Factory<Algorithm>& algorithm, const char* mode) {
    const TempDir dir;
    const bool is_text = algorithm.name() == "SeqLengthWarmup";
    TrainerOptions options = tiny_options(dir / "run");
    options.model = from_module([] { return std::make_shared<MeanOfValues>(); },
                                is_text ? "tokens" : "image",
                                cross_entropy("label"));
    options.backend.mode = mode;
    options.loop.max_steps = kUpdates;
    options.loop.eval_frequency = 0;
    options.algorithms = {algorithm};
    Trainer trainer(options, quiet_log());
    trainer.fit(is_text ? sequences() : pictures("train"));
    CHECK((trained_steps(trainer) > 0) == (std::string(mode) == "traced"));
    return bits_of(trainer);
  };
  const std::vector<Factory<Algorithm>> all = {
      use<ColOut>({0.25, 0.25}), use<ProgressiveResizing>(resizing), use<SeqLengthWarmup>(warmup)};
  for (const Factory<Algorithm>& algorithm : all) {
    CAPTURE(algorithm.name());
    CHECK(first_difference(fit(algorithm, "eager"), fit(algorithm, "traced")) == "");
  }
}

TEST_CASE("with each algorithm that a config can name traced equals eager, and resumed unstopped") {
  // A stop, since schedules of algorithms are shares of the run.
  const auto fit = [](const TempDir& dir,
                      const Factory<Algorithm>& algorithm,
                      const char* mode,
                      int64_t stop_after) {
    Mlp::Options mlp;
    mlp.sizes = {64, 3};
    ProbeCallback::Options probe;
    probe.train_batch_end = [=](Trainer& trainer) {
      if (trainer.state().timestamp.update == stop_after) {
        trainer.request_stop("enough");
      }
    };
    TrainerOptions options = tiny_options(dir / "run");
    options.model = use<Mlp>(mlp);
    options.backend.mode = mode;
    options.loop.max_steps = kUpdates;
    options.loop.eval_frequency = 0;
    options.algorithms = {algorithm};
    options.callbacks = {use<ProbeCallback>(probe)};
    Trainer trainer(options, quiet_log());
    trainer.fit(pictures("train"));
    return bits_of(trainer);
  };
  // These change the size of a sample, for which a perceptron is not made, or layers that it lacks.
  const std::set<std::string> left_out = {"ColOut",
                                          "ProgressiveResizing",
                                          "SeqLengthWarmup",
                                          "SqueezeExcite",
                                          "GhostBatchNorm",
                                          "WeightStandardization",
                                          "Factorize",
                                          "LowPrecisionLayerNorm",
                                          "LowPrecisionGroupNorm",
                                          "StochasticDepth"};
  for (const auto& entry : builtins().algorithms.entries()) {
    if (left_out.count(entry.name) > 0) {
      continue;
    }
    CAPTURE(entry.name);
    std::vector<Fault> faults;
    FaultSink sink("algorithms", faults);
    const Factory<Algorithm> algorithm = entry.read({}, {}, sink);
    REQUIRE(faults.empty());
    const TempDir eager_dir;
    const TempDir traced_dir;
    const TempDir resumed_dir;
    const StateDict eager = fit(eager_dir, algorithm, "eager", kUpdates);
    CHECK(first_difference(eager, fit(traced_dir, algorithm, "traced", kUpdates)) == "");
    fit(resumed_dir, algorithm, "traced", kUpdates / 2);
    CHECK(first_difference(eager, fit(resumed_dir, algorithm, "traced", kUpdates)) == "");
  }
}

TEST_SUITE_END();
