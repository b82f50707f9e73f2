#include "callbacks/core/model_callback.h"

#include <doctest/doctest.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <exception>
#include <string>
#include <vector>

#include "callbacks/algorithms/layer_freezing.h"
#include "core/error.h"
#include "models/builtin/mlp.h"
#include "models/model_state.h"
#include "optim/sgd.h"
#include "sparsity/algorithms.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

TrainerOptions options_with(const TempDir& dir,
                            const std::string& mode,
                            const std::vector<std::string>& freeze) {
  TrainerOptions options = tiny_options(dir.path() / mode);
  Mlp::Options mlp;
  mlp.sizes = {4, 5, 3};
  mlp.input = "x";
  options.model = use<Mlp>(mlp);
  options.backend.mode = mode;
  options.loop.max_steps = 4;
  options.freeze = freeze;
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/core/model_callback");

TEST_CASE("frozen parameters keep their values, and the others are trained, traced as eager") {
  const TempDir dir;
  std::vector<StateDict> trained;
  for (const std::string mode : {"eager", "traced"}) {
    CAPTURE(mode);
    Trainer trainer(options_with(dir, mode, {"layer0.*"}), quiet_log());
    const torch::nn::Module& module = trainer.state().model->module();
    const StateDict before = deep_copy(model_state(module));
    trainer.fit(tiny_loader("train"));
    for (const NamedTensor& parameter : named_parameters(module)) {
      const bool is_frozen = parameter.first.rfind("layer0.", 0) == 0;
      CAPTURE(parameter.first);
      CHECK(at::equal(parameter.second, before.at(parameter.first).as_tensor()) == is_frozen);
    }
    CHECK(trainer.state().optimizer->trained().size() == 2);
    trained.push_back(deep_copy(model_state(module)));
  }
  CHECK(first_difference(trained[0], trained[1]) == "");
}

TEST_CASE("sparsity leaves frozen parameters alone") {
  const TempDir dir;
  TrainerOptions options = options_with(dir, "traced", {"layer0.*"});
  options.sparsity.sparsity = 0.5;
  Trainer trainer(options, quiet_log());
  const torch::nn::Module& module = trainer.state().model->module();
  const StateDict before = deep_copy(model_state(module));
  trainer.fit(tiny_loader("train"));
  const StateDict after = model_state(module);
  CHECK(at::equal(after.at("layer0.weight").as_tensor(), before.at("layer0.weight").as_tensor()));
  CHECK(after.at("layer1.weight").as_tensor().eq(0).sum().item<int64_t>() > 0);
}

TEST_CASE("layers that are frozen one by one leave the last that trains") {
  const TempDir dir;
  TrainerOptions options = options_with(dir, "traced", {"layer1.*", "layer2.*"});
  Mlp::Options mlp;
  mlp.sizes = {4, 5, 5, 3};
  mlp.input = "x";
  options.model = use<Mlp>(mlp);
  options.loop.max_steps = 8;
  options.algorithms = {use<LayerFreezing>({0.0, 1.0})};
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train", 4));
  for (const NamedTensor& parameter : named_parameters(trainer.state().model->module())) {
    CHECK(parameter.second.requires_grad() == (parameter.first.rfind("layer0.", 0) == 0));
  }
}

TEST_CASE("an optimizer that frozen parameters leave nothing names those that are trained") {
  const TempDir dir;
  TrainerOptions options = options_with(dir, "eager", {"layer0.*"});
  options.optimizer = {};
  options.optimizers = {{"first", {"layer0.*"}, use<Sgd>({0.1})},
                        {"second", {"layer1.*"}, use<Sgd>({0.1})}};
  std::string said;
  try {
    const Trainer trainer(options, quiet_log());
  } catch (const Error&) {
    said = describe(std::current_exception());
  }
  CHECK(said.find("picks no parameter that is trained; there are: layer1.weight, layer1.bias") !=
        std::string::npos);
}

TEST_CASE("a glob that freezes nothing is an error with a suggestion") {
  const TempDir dir;
  try {
    const Trainer trainer(options_with(dir, "eager", {"layer0.*", "layer1.weihgt"}), quiet_log());
    FAIL("a glob that matches nothing was accepted");
  } catch (const Error&) {
    const std::string message = describe(std::current_exception());
    CHECK(message.find("freeze: \"layer1.weihgt\" matches no parameter") != std::string::npos);
    CHECK(message.find("did you mean \"layer1.weight\"?") != std::string::npos);
  }
}

TEST_SUITE_END();
