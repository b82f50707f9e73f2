#include <doctest/doctest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "callbacks/builtin/keep_n_checkpoints.h"
#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "models/from_module.h"
#include "optim/adam.h"
#include "optim/schedulers.h"
#include "support/contains.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("trainer/sound_checkpoint");

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// 6 updates, saved after every second one, of which the newest file is kept.
TrainerOptions run_options(const fs::path& model_dir, bool async = false) {
  TrainerOptions options = tiny_options(model_dir);
  options.loop.max_steps = 6;
  options.checkpoint.steps = 2;
  options.checkpoint.async = async;
  options.callbacks = {use<KeepNCheckpoints>({1})};
  return options;
}

/// The first gradient of this update is infinite; the loss is not.
Factory<Callback> infinite_gradient_at(int64_t update) {
  ProbeCallback::Options probe;
  probe.after_backward = [update](Trainer& trainer, const Outputs&) {
    if (trainer.state().global_step() + 1 == update) {
      trainer.state().optimizer->grads()[0].fill_(kInfinity);
    }
  };
  return use<ProbeCallback>(probe);
}

/// What a fit that ends with a NonFiniteLossError tells; "" when it ends well. With a save in the
/// background the loss of the next update may be what ends it: then the save's error is in the log.
std::string fit_error(const TrainerOptions& options) {
  std::vector<std::string> lines;
  Trainer trainer(options, quiet_log(&lines));
  try {
    trainer.fit(tiny_loader("train"));
  } catch (const NonFiniteLossError& error) {
    std::string all = error.what();
    for (const std::string& line : lines) {
      all += "\n" + line;
    }
    return all;
  }
  return "";
}

struct MaskedLayer : torch::nn::Module {
  MaskedLayer() : linear(register_module("linear", torch::nn::Linear(4, 3))) {
    mask = register_buffer("mask", torch::tensor({0.0F, -kInfinity, 0.0F}));
  }

  at::Tensor forward(const at::Tensor& x) { return linear(x) + mask.masked_fill(mask.isinf(), 0); }

  torch::nn::Linear linear;
  at::Tensor mask;
};

}  // namespace

TEST_CASE("weights that an infinite gradient made infinite are not saved; the last file stays") {
  for (const bool async : {false, true}) {
    for (const int64_t update : {4, 6}) {  // 6 is the last one
      CAPTURE(async);
      CAPTURE(update);
      const TempDir dir;
      TrainerOptions options = run_options(dir / "run", async);
      options.callbacks.push_back(infinite_gradient_at(update));
      const std::string error = fit_error(options);
      CHECK(contains(error, "model/0.weight"));
      CHECK(contains(error, "update " + std::to_string(update)));
      CHECK(contains(error, "12 of 12"));
      const std::string last = "checkpoint_" + std::to_string(update - 2) + ".pt";
      CHECK(fs::exists(dir / "run" / last));
      CHECK_FALSE(fs::exists(dir / "run" / ("checkpoint_" + std::to_string(update) + ".pt")));
      CHECK(fs::read_symlink(dir / "run/latest").filename() == last);

      Trainer resumed(run_options(dir / "run", async), quiet_log());
      CHECK(resumed.fit(tiny_loader("train")).steps_now == 8 - update);
      CHECK(fs::exists(dir / "run/checkpoint_6.pt"));
    }
  }
}

TEST_CASE("a resumed run has the bits of one whose gradients were finite") {
  const TempDir dir;
  Trainer straight(run_options(dir / "straight"), quiet_log());
  straight.fit(tiny_loader("train"));
  TrainerOptions options = run_options(dir / "run");
  options.callbacks.push_back(infinite_gradient_at(4));
  REQUIRE_FALSE(fit_error(options).empty());
  Trainer resumed(run_options(dir / "run"), quiet_log());
  resumed.fit(tiny_loader("train"));
  CHECK(first_difference(bits_of(straight), bits_of(resumed)).empty());
}

TEST_CASE("replayed steps are held to the same") {
  const TempDir dir;
  TrainerOptions options = run_options(dir / "run");
  options.backend.mode = "traced";
  StepLR::Options jump;
  jump.initial_learning_rate = 0.1;
  jump.step_size = 5;
  jump.gamma = 1e45;  // infinite as a float
  options.schedulers = {use<StepLR>(jump)};
  CHECK(contains(fit_error(options), "model/0."));
  CHECK(fs::exists(dir / "run/checkpoint_4.pt"));
  CHECK_FALSE(fs::exists(dir / "run/checkpoint_6.pt"));
}

TEST_CASE("checkpoint.on_error = \"warn\" does not let a run go on with infinite weights") {
  const TempDir dir;
  TrainerOptions options = run_options(dir / "run");
  options.checkpoint.on_error = "warn";
  options.callbacks.push_back(infinite_gradient_at(6));
  CHECK_FALSE(fit_error(options).empty());
  CHECK_FALSE(fs::exists(dir / "run/checkpoint_6.pt"));
}

TEST_CASE("checkpoint.require_finite = false saves whatever there is") {
  const TempDir dir;
  TrainerOptions options = run_options(dir / "run");
  options.checkpoint.require_finite = false;
  options.callbacks.push_back(infinite_gradient_at(6));
  CHECK(fit_error(options).empty());
  CHECK(fs::exists(dir / "run/checkpoint_6.pt"));
  CHECK_FALSE(fs::exists(dir / "run/checkpoint_4.pt"));
}

TEST_CASE("what the optimizer keeps must be finite, also where weights are") {
  const TempDir dir;
  TrainerOptions options = run_options(dir / "run");
  options.optimizer = use<Adam>({1e-3});
  ProbeCallback::Options probe;
  probe.after_optimizer_step = [](Trainer& trainer, Optimizer& optimizer) {
    if (trainer.state().global_step() == 3) {
      optimizer.groups()[0].params[1].state("exp_avg_sq").fill_(kInfinity);
    }
  };
  options.callbacks.push_back(use<ProbeCallback>(probe));
  CHECK(contains(fit_error(options), "optimizer/state/0.bias/exp_avg_sq"));
}

TEST_CASE(
    "a buffer that was infinite from the beginning is a constant, one that became so is not") {
  const TempDir dir;
  TrainerOptions options = run_options(dir / "run");
  options.model =
      from_module([] { return std::make_shared<MaskedLayer>(); }, "x", cross_entropy("label"));
  SUBCASE("the constant alone") {
    CHECK(fit_error(options).empty());
    options.loop.max_steps = 8;
    CHECK(fit_error(options).empty());  // it was loaded as it is
    CHECK(fs::exists(dir / "run/checkpoint_8.pt"));
  }
  SUBCASE("one that becomes so") {
    options.model = from_module(
        [] {
          return torch::nn::Sequential(
              torch::nn::Linear(4, 3),
              torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(3).momentum(0.1)));
        },
        "x",
        cross_entropy("label"));
    ProbeCallback::Options probe;
    probe.train_batch_end = [](Trainer& trainer) {
      trainer.state().model->module().named_buffers()["1.running_var"].fill_(kInfinity);
    };
    options.callbacks.push_back(use<ProbeCallback>(probe));
    CHECK(contains(fit_error(options), "model/1.running_var"));
  }
}

TEST_CASE("frozen parameters and numbers of callbacks are not looked at") {
  class Numbers final : public Callback {
   public:
    StateDict save_state() const override { return {{"best", torch::full({}, kInfinity)}}; }
  };

  const TempDir dir;
  TrainerOptions options = run_options(dir / "run");
  options.callbacks.push_back(use<Numbers>({}));
  ProbeCallback::Options probe;
  probe.train_batch_end = [](Trainer& trainer) {
    if (trainer.state().global_step() == 6) {
      at::Tensor bias = trainer.state().model->module().named_parameters()["0.bias"];
      bias.requires_grad_(false).fill_(kInfinity);
    }
  };
  options.callbacks.push_back(use<ProbeCallback>(probe));
  CHECK(fit_error(options).empty());
  CHECK(fs::exists(dir / "run/checkpoint_6.pt"));
}

TEST_CASE("a save that code asks for is refused in the same way") {
  const TempDir dir;
  Trainer trainer(tiny_options(dir / "run"), quiet_log());
  trainer.save_checkpoint();
  trainer.state().model->module().named_parameters()["0.bias"].data().fill_(kInfinity);
  CHECK_THROWS_AS(trainer.save_checkpoint(), NonFiniteLossError);
  CHECK(fs::exists(dir / "run/checkpoint_0.pt"));
  CHECK_FALSE(fs::exists(dir / "run/checkpoint_0-1.pt"));
}

TEST_SUITE_END();
