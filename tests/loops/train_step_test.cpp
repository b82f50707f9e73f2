#include "loops/train_step.h"

#include <doctest/doctest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "loops/backend_modes.h"
#include "models/from_module.h"
#include "models/module_model.h"
#include "optim/schedulers.h"
#include "optim/sgd.h"
#include "support/probe_callback.h"
#include "support/recording_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// One weight with a gradient of 1 (the loss is the weight), or without a loss at all.
class OneWeight final : public ModuleModel {
 public:
  struct Options {
    bool has_loss = true;
  };

  explicit OneWeight(const Options& options) : options_(options) {
    weight_ = register_parameter("weight", torch::ones({}));
  }

  Outputs forward(const Batch&) override {
    return {{options_.has_loss ? "loss" : "score", weight_ * 1.0}, {"copies", weight_.expand({2})}};
  }

 private:
  Options options_;
  at::Tensor weight_;
};

TrainerOptions probed(const TempDir& dir, const char* mode, const ProbeCallback::Options& probe) {
  TrainerOptions options = tiny_options(dir / "run");
  options.backend.mode = mode;
  options.model = use<OneWeight>();
  options.callbacks = {use<ProbeCallback>(probe)};
  options.loop.eval_frequency = 0;
  return options;
}

double weight_of(Trainer& trainer) {
  return trainer.state().model->module().parameters()[0].item<double>();
}

}  // namespace

TEST_SUITE_BEGIN("loops/train_step");

TEST_CASE("T76: before the update gradients are not yet clipped; after it lr is the applied one") {
  const TempDir dir;
  std::vector<double> before;
  std::vector<double> after;
  std::vector<double> rates;
  ProbeCallback::Options probe;
  probe.before_optimizer_step = [&](Trainer&, Optimizer& optimizer) {
    before.push_back(optimizer.grads()[0].item<double>());
  };
  probe.after_optimizer_step = [&](Trainer&, Optimizer& optimizer) {
    after.push_back(optimizer.grads()[0].item<double>());
    rates.push_back(optimizer.groups()[0]["lr"].item<double>());
  };
  TrainerOptions options = probed(dir, "eager", probe);
  options.precision.max_gradient_norm = 0.25;
  LinearLR::Options linear;
  linear.initial_learning_rate = 1.0;
  linear.end_learning_rate = 0.0;
  linear.total_iters = 4;
  options.schedulers = {use<LinearLR>(linear)};
  options.loop.max_steps = 3;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  CHECK(before == std::vector<double>{1.0, 1.0, 1.0});
  CHECK(after[0] == doctest::Approx(0.25));
  CHECK(rates == std::vector<double>{1.0, 0.75, 0.5});
  CHECK(weight_of(trainer) == doctest::Approx(1.0 - 0.25 * (1.0 + 0.75 + 0.5)));
}

TEST_CASE("P16: without max_gradient_norm nothing is clipped") {
  const TempDir dir;
  std::vector<double> after;
  ProbeCallback::Options probe;
  probe.after_forward = [](Outputs& outputs) { outputs.set("loss", outputs["loss"] * 1e6); };
  probe.after_optimizer_step = [&](Trainer&, Optimizer& optimizer) {
    after.push_back(optimizer.grads()[0].item<double>());
  };
  TrainerOptions options = probed(dir, "eager", probe);
  options.loop.max_steps = 1;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  CHECK(after == std::vector<double>{1e6});
}

TEST_CASE("T79: what is added to the input reaches the model, replaced outputs reach backward") {
  for (const char* mode : kModes) {
    CAPTURE(mode);
    const TempDir dir;
    ProbeCallback::Options probe;
    probe.before_forward = [](Batch& input) { input.set("image", input["x"] * 2.0); };
    probe.after_forward = [](Outputs& outputs) { outputs.set("loss", outputs["loss"] * 3.0); };
    TrainerOptions options = probed(dir, mode, probe);
    options.optimizer = use<Sgd>({0.1});
    options.loop.max_steps = 5;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    CHECK(weight_of(trainer) == doctest::Approx(1.0 - 5 * 0.1 * 3.0));

    probe.after_forward = {};
    TrainerOptions seeing = probed(dir, mode, probe);
    seeing.model_dir = dir / "seeing";
    seeing.model = from_module([] { return torch::nn::Sequential(torch::nn::Linear(4, 3)); },
                               "image",
                               cross_entropy("label"));
    Trainer(seeing, quiet_log()).fit(tiny_loader("train"));  // fails without "image"
  }
}

TEST_CASE("T80: a model without a loss is an error that lists what it returned") {
  for (const char* mode : kModes) {
    CAPTURE(mode);
    const TempDir dir;
    TrainerOptions options = probed(dir, mode, {});
    options.model = use<OneWeight>({false});
    Trainer trainer(options, quiet_log());
    try {
      trainer.fit(tiny_loader("train"));
      FAIL("nothing was thrown");
    } catch (const UsageError& error) {
      const std::string text = error.what();
      CHECK(text.find("loss") != std::string::npos);
      CHECK(text.find("score, copies") != std::string::npos);
    }
  }
}

TEST_CASE("T120: a loss of more than one number is a ShapeError") {
  const TempDir dir;
  ProbeCallback::Options probe;
  probe.after_forward = [](Outputs& outputs) { outputs.set("loss", outputs["copies"]); };
  Trainer trainer(probed(dir, "eager", probe), quiet_log());
  CHECK_THROWS_AS(trainer.fit(tiny_loader("train")), ShapeError);
}

TEST_CASE("P9: after each backward its hook gets the loss divided by the group") {
  const TempDir dir;
  std::vector<double> losses;
  ProbeCallback::Options probe;
  probe.after_backward = [&](Trainer&, const Outputs& outputs) {
    losses.push_back(outputs["loss"].item<double>());
  };
  TrainerOptions options = probed(dir, "eager", probe);
  options.optimizer = use<Sgd>({0.0});
  options.loop.max_steps = 1;
  options.loop.grad_accum_steps = 4;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  CHECK(losses == std::vector<double>{0.25, 0.25, 0.25, 0.25});
}

TEST_CASE("P10: the hook at the end of a batch sees the new count") {
  for (const char* mode : kModes) {
    const TempDir dir;
    std::vector<int64_t> counts;
    ProbeCallback::Options probe;
    probe.train_batch_end = [&](Trainer& trainer) {
      counts.push_back(trainer.state().global_step());
    };
    TrainerOptions options = probed(dir, mode, probe);
    options.loop.max_steps = 2;
    options.loop.grad_accum_steps = 2;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    CHECK(counts == std::vector<int64_t>{0, 1, 1, 2});
  }
}

TEST_CASE("the hook after gradients were cleared finds none") {
  const TempDir dir;
  std::vector<size_t> with_gradients;
  ProbeCallback::Options probe;
  probe.after_zero_grad = [&](Optimizer& optimizer) {
    with_gradients.push_back(optimizer.grads().size());
  };
  TrainerOptions options = probed(dir, "eager", probe);
  options.loop.max_steps = 2;
  Trainer(options, quiet_log()).fit(tiny_loader("train"));
  CHECK(with_gradients == std::vector<size_t>{0, 0});
}

TEST_CASE("P13: optimizer, then schedulers, both once an update, in every update") {
  const TempDir dir;
  std::vector<std::string> hooks;
  RecordingCallback::Options recording;
  recording.hooks = &hooks;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<RecordingCallback>(recording)};
  options.schedulers = {use<ConstantLR>({0.1})};
  options.loop.max_steps = 3;
  options.loop.grad_accum_steps = 2;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  std::vector<std::string> moves;
  for (const std::string& hook : hooks) {
    if (hook == "on_after_optimizer_step" || hook == "on_after_scheduler_step") {
      moves.push_back(hook);
    }
  }
  REQUIRE(moves.size() == 6);
  for (size_t i = 0; i < moves.size(); ++i) {
    CHECK(moves[i] == (i % 2 == 0 ? "on_after_optimizer_step" : "on_after_scheduler_step"));
  }
}

TEST_SUITE_END();
