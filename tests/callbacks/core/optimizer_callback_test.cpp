#include "callbacks/core/optimizer_callback.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "models/module_model.h"
#include "optim/adam.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// One weight from the beginning, and what a test adds.
class Growing final : public ModuleModel {
 public:
  struct Options {
    bool grows_in_forward = false;
    bool has_frozen = false;
  };

  explicit Growing(const Options& options) : options_(options) {
    weight_ = register_parameter("weight", torch::ones({}));
    if (options.has_frozen) {
      register_parameter("frozen", torch::ones({}), /*requires_grad=*/false);
    }
  }

  Outputs forward(const Batch&) override {
    if (options_.grows_in_forward && !late_.defined()) {
      late_ = register_parameter("late", torch::ones({}));
    }
    return {{"loss", late_.defined() ? weight_ * late_ : weight_ * 1.0}};
  }

 private:
  Options options_;
  at::Tensor weight_;
  at::Tensor late_;
};

TrainerOptions options_of(const TempDir& dir, const Growing::Options& model) {
  TrainerOptions options = tiny_options(dir / "run");
  options.model = use<Growing>(model);
  options.loop.max_steps = 4;
  options.loop.eval_frequency = 2;
  return options;
}

/// What was said of parameters that are not trained.
std::vector<std::string> warnings_in(const std::vector<std::string>& lines) {
  std::vector<std::string> warnings;
  for (const std::string& line : lines) {
    if (line.find("does not train") != std::string::npos) {
      warnings.push_back(line);
    }
  }
  return warnings;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/core/optimizer_callback");

TEST_CASE("parameters that come after the optimizer took its own are warned of once, by name") {
  for (const bool in_forward : {false, true}) {
    CAPTURE(in_forward);
    const TempDir dir;
    std::vector<std::string> lines;
    TrainerOptions options = options_of(dir, {in_forward, false});
    Trainer trainer(options, quiet_log(&lines));
    if (!in_forward) {
      trainer.state().model->module().register_parameter("late", torch::ones({}));
    }
    trainer.fit(tiny_loader("train"));
    REQUIRE(warnings_in(lines).size() == 1);
    CHECK(warnings_in(lines)[0].find("does not train late:") != std::string::npos);
  }
}

TEST_CASE("a parameter that is frozen is no reason for a warning until it is to be trained") {
  const TempDir dir;
  std::vector<std::string> lines;
  TrainerOptions options = options_of(dir, {false, true});
  Trainer trainer(options, quiet_log(&lines));
  trainer.fit(tiny_loader("train"));
  CHECK(warnings_in(lines).empty());
  TrainerOptions longer = options;
  longer.loop.max_steps = 8;
  Trainer second(longer, quiet_log(&lines));
  second.state().model->module().named_parameters()["frozen"].set_requires_grad(true);
  second.fit(tiny_loader("train"));
  REQUIRE(warnings_in(lines).size() == 1);
  CHECK(warnings_in(lines)[0].find("does not train frozen:") != std::string::npos);
}

TEST_CASE("the log says how many parameters are decayed") {
  const auto line_of = [](bool decays_biases) {
    const TempDir dir;
    std::string found;
    TrainerOptions options = tiny_options(dir / "run");  // a layer of 4 by 3
    AdamW::Options adamw;
    adamw.decay_biases_and_norms = decays_biases;
    options.optimizer = use<AdamW>(adamw);
    options.loop.max_steps = 1;
    Trainer trainer(options, TextLog::to([&](LogLevel, std::string_view text) {
                      const bool is_it = text.find("weight decay") != std::string_view::npos;
                      found = is_it ? std::string(text) : found;
                    }));
    trainer.fit(tiny_loader("train"));
    return found;
  };
  CHECK(line_of(true).find("15 of 15") != std::string::npos);
  CHECK(line_of(false).find("12 of 15") != std::string::npos);
}

TEST_SUITE_END();
