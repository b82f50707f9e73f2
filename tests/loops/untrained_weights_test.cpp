// What an evaluation does with weights that nobody trained.

#include <doctest/doctest.h>
#include <torch/jit.h>
#include <torch/nn/modules/linear.h>
#include <torch/script.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "models/builtin/script_model.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("loops/untrained_weights");

namespace {

struct Evaluation {
  const char* name;
  std::function<void(Trainer&)> run;
};

/// Everything that evaluates a model with the newest checkpoint, where there is one.
std::vector<Evaluation> evaluations() {
  return {{"validate", [](Trainer& trainer) { trainer.validate(tiny_loader("val")); }},
          {"validate_all", [](Trainer& trainer) { trainer.validate_all({tiny_loader("val")}); }},
          {"validate_all_indexed",
           [](Trainer& trainer) { trainer.validate_all_indexed({tiny_loader("val")}); }},
          {"predict", [](Trainer& trainer) { trainer.predict(tiny_loader("val")); }}};
}

bool tells_of_untrained(const std::vector<std::string>& lines) {
  return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("these weights are untrained") != std::string::npos;
  });
}

/// Whether an evaluation by a Trainer of these options warns of untrained weights.
bool warns(const TrainerOptions& options, const Evaluation& evaluation) {
  std::vector<std::string> lines;
  Trainer trainer(options, quiet_log(&lines));
  evaluation.run(trainer);
  return tells_of_untrained(lines);
}

TrainerOptions refusing(const fs::path& run) {
  TrainerOptions options = tiny_options(run);
  options.untrained = UntrainedWeights::Refuse;
  return options;
}

void fit(const fs::path& run) {
  TrainerOptions options = tiny_options(run);
  options.loop.max_steps = 2;
  Trainer(options, quiet_log()).fit(tiny_loader("train"));
}

}  // namespace

TEST_CASE("weights that nobody trained: a warning from code, an error where they are refused") {
  for (const Evaluation& evaluation : evaluations()) {
    CAPTURE(evaluation.name);
    const TempDir dir;
    TrainerOptions options = tiny_options(dir / "run");
    CHECK(warns(options, evaluation));
    options.untrained = UntrainedWeights::Accept;
    CHECK_FALSE(warns(options, evaluation));
    options.untrained = UntrainedWeights::Refuse;
    Trainer trainer(options, quiet_log());
    CHECK_THROWS_AS(evaluation.run(trainer), ConfigError);
    CHECK_THROWS_AS(evaluation.run(trainer), ConfigError);  // it is not forgotten
  }
}

TEST_CASE("weights are trained by a finished fit, of another process or of this one") {
  const TempDir dir;
  fit(dir / "run");
  for (const Evaluation& evaluation : evaluations()) {
    CAPTURE(evaluation.name);
    Trainer later(refusing(dir / "run"), quiet_log());
    CHECK_NOTHROW(evaluation.run(later));

    TrainerOptions options = refusing(dir / evaluation.name);
    options.loop.max_steps = 2;
    options.checkpoint.save_final_checkpoint = false;
    Trainer same(options, quiet_log());
    same.fit(tiny_loader("train"));
    CHECK_NOTHROW(evaluation.run(same));
  }
}

TEST_CASE("weights are trained when a file gave the model entries, by load.path or by name") {
  const TempDir dir;
  fit(dir / "run");
  const fs::path file = dir / "run/checkpoint_2.pt";
  for (const Evaluation& evaluation : evaluations()) {
    CAPTURE(evaluation.name);
    TrainerOptions options = refusing(dir / evaluation.name);
    options.checkpoint.load.path = file;
    {
      Trainer trainer(options, quiet_log());
      CHECK_NOTHROW(evaluation.run(trainer));
    }
    options.checkpoint.load.ignore = {"model"};
    {
      Trainer trainer(options, quiet_log());
      CHECK_THROWS_AS(evaluation.run(trainer), ConfigError);
    }
    Trainer trainer(refusing(dir / evaluation.name), quiet_log());
    trainer.load_checkpoint(file);
    CHECK_NOTHROW(evaluation.run(trainer));
  }
}

TEST_CASE("who loads nothing, by name, means the weights as they are") {
  const TempDir dir;
  Trainer trainer(refusing(dir / "run"), quiet_log());
  CHECK_NOTHROW(trainer.validate(tiny_loader("val"), LoadFrom::nothing()));
  CHECK_NOTHROW(trainer.predict(tiny_loader("val"), LoadFrom::nothing()));
}

TEST_CASE("the model of a TorchScript file is trained") {
  const TempDir dir;
  torch::jit::Module script("Linear");
  script.register_parameter("weight", torch::ones({3, 4}), false);
  script.define("def forward(self, x):\n  return torch.linear(x, self.weight)\n");
  script.save((dir / "model.pt").string());
  for (const Evaluation& evaluation : evaluations()) {
    CAPTURE(evaluation.name);
    TrainerOptions options = refusing(dir / evaluation.name);
    ScriptModel::Options model;
    model.path = dir / "model.pt";
    model.inputs = {"x"};
    options.model = use<ScriptModel>(model);
    options.optimizer = {};
    Trainer trainer(options, quiet_log());
    CHECK_NOTHROW(evaluation.run(trainer));
  }
}

TEST_CASE("a fit begins with weights that nobody trained, and validates them without a word") {
  const TempDir dir;
  std::vector<std::string> lines;
  TrainerOptions options = refusing(dir / "run");
  options.loop.max_steps = 2;
  options.loop.eval_frequency = 1;
  Trainer trainer(options, quiet_log(&lines));
  CHECK_NOTHROW(trainer.fit(tiny_loader("train"), {tiny_loader("val")}));
  CHECK_FALSE(tells_of_untrained(lines));
}

TEST_SUITE_END();
