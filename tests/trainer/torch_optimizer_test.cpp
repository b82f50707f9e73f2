// LibTorch's own optimizers and schedulers in a Trainer.

#include "optim/torch_optimizer.h"

#include <doctest/doctest.h>
#include <torch/optim/adam.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "optim/adam.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("trainer/torch_optimizer");

namespace {

TrainerOptions options_of(const std::filesystem::path& dir, Factory<Optimizer> optimizer) {
  TrainerOptions options = tiny_options(dir);
  options.optimizer = std::move(optimizer);
  options.backend.mode = "eager";
  options.loop.max_steps = 10;
  options.loop.eval_frequency = 0;
  return options;
}

/// Parameters after a fit.
StateDict trained(const TrainerOptions& options) {
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train", 20));
  return bits_of(trainer).at("model").as_dict();
}

double last_loss(Factory<Optimizer> optimizer) {
  const TempDir dir;
  std::vector<MemoryLogger::Entry> entries;
  TrainerOptions options = options_of(dir / "run", std::move(optimizer));
  options.loggers = {use<MemoryLogger>({&entries, nullptr})};
  options.logging.log_steps = 1;
  Trainer trainer(options, quiet_log());
  LoaderOptions whole;
  whole.batch_size = 20;
  trainer.fit(tiny_loader("train", 20, whole));
  double loss = -1.0;
  for (const MemoryLogger::Entry& entry : entries) {
    loss = entry.name == "loss" ? entry.value : loss;
  }
  return loss;
}

std::string message_of(const TrainerOptions& options) {
  try {
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train", 20));
  } catch (const Error&) {
    return describe(std::current_exception());
  }
  return "";
}

std::vector<TorchOptimizer::MakeScheduler> every_third_update() {
  return {[](torch::optim::Optimizer& optimizer) {
    return std::make_unique<torch::optim::StepLR>(optimizer, 3, 0.5);
  }};
}

Factory<Optimizer> scheduled() {
  return from_torch<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9),
                                       every_third_update());
}

}  // namespace

TEST_CASE("an optimizer of LibTorch trains in eager steps as rondo's does") {
  const TempDir dir;
  const StateDict theirs = trained(
      options_of(dir / "a", from_torch<torch::optim::Adam>(torch::optim::AdamOptions(0.01))));
  const StateDict ours = trained(options_of(dir / "b", use<Adam>({0.01})));
  CHECK(first_difference(ours, theirs) == "");
}

TEST_CASE("LBFGS computes the loss several times in an update") {
  const double lbfgs = last_loss(from_torch<torch::optim::LBFGS>(torch::optim::LBFGSOptions(0.5)));
  const double sgd = last_loss(from_torch<torch::optim::SGD>(torch::optim::SGDOptions(0.5)));
  CHECK(lbfgs >= 0.0);
  CHECK(lbfgs < sgd);
  const TempDir dir;
  TrainerOptions grouped =
      options_of(dir / "run", from_torch<torch::optim::LBFGS>(torch::optim::LBFGSOptions(0.5)));
  grouped.loop.grad_accum_steps = 2;
  CHECK(message_of(grouped).find("grad_accum_steps = 1") != std::string::npos);
}

TEST_CASE("a run with LibTorch's optimizer and scheduler is resumed as it was") {
  const TempDir dir;
  const StateDict straight = trained(options_of(dir / "straight", scheduled()));
  TrainerOptions half = options_of(dir / "resumed", scheduled());
  half.loop.max_steps = 5;
  half.checkpoint.steps = 5;
  trained(half);
  half.loop.max_steps = 10;
  Trainer trainer(half, quiet_log());
  CHECK(trainer.fit(tiny_loader("train", 20)).steps_now == 5);
  CHECK(first_difference(straight, bits_of(trainer).at("model").as_dict()) == "");
  // Halved three times: LibTorch counts from 0, so after updates 4, 7 and 10.
  CHECK(trainer.state().optimizer->groups()[0]["lr"].item<double>() == doctest::Approx(0.0125));
}

TEST_CASE("a recorded step refuses them and names rondo's own") {
  const TempDir dir;
  TrainerOptions options =
      options_of(dir / "run", from_torch<torch::optim::SGD>(torch::optim::SGDOptions(0.1)));
  options.backend.mode = "traced";
  const std::string message = message_of(options);
  CHECK(message.find("trainer.init.optimizer.SGD") != std::string::npos);
  CHECK(message.find("eager") != std::string::npos);
}

TEST_SUITE_END();
