#include "callbacks/builtin/save_script.h"

#include <doctest/doctest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/script.h>
#include <torch/types.h>

#include <filesystem>
#include <string>

#include "core/error.h"
#include "models/builtin/script_model.h"
#include "models/model_state.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

std::filesystem::path write_script(const TempDir& dir) {
  torch::manual_seed(3);
  torch::jit::Module root("Root");
  root.register_attribute("training", c10::BoolType::get(), true);
  root.register_parameter("weight", torch::randn({3, 4}).requires_grad_(), /*is_buffer=*/false);
  root.register_parameter("bias", torch::zeros({3}).requires_grad_(), /*is_buffer=*/false);
  root.define("def forward(self, x):\n    return torch.addmm(self.bias, x, self.weight.t())\n");
  const std::filesystem::path path = dir / "script.ts";
  root.save(path.string());
  return path;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/save_script");

TEST_CASE("a script is trained and written back, with the trained weights and nothing else") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  ScriptModel::Options script;
  script.path = write_script(dir);
  script.inputs = {"x"};
  options.model = use<ScriptModel>(script);
  options.backend.mode = "traced";
  options.loop.max_steps = 6;
  options.callbacks = {use<SaveScript>()};
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  const std::filesystem::path file = dir / "run/trained.ts";
  script.path = file;
  ScriptModel written(script);
  const StateDict trained = model_state(trainer.state().model->module());
  CHECK(first_difference(trained, model_state(written.module())) == "");
  const torch::jit::Module plain = torch::jit::load(file.string());
  CHECK(equal_bytes(plain.attr("weight").toTensor().detach(), trained.at("weight").as_tensor()));
  CHECK(std::filesystem::file_size(file) < std::filesystem::file_size(dir / "script.ts") + 1000);
}

TEST_CASE("another model is refused") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<SaveScript>()};
  CHECK_THROWS_AS(Trainer(options, quiet_log()), HookError);
}

TEST_SUITE_END();
