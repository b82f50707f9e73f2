#include <doctest/doctest.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/summary.h"
#include "models/module_model.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// A linear model that summarizes what it computes.
struct Summarizing final : ModuleModel {
  struct Options {
    bool scalar_of_vector = false;
    bool tensor_of_scalar = false;
  };

  explicit Summarizing(const Options& o) : options(o) { register_module("layer", layer); }

  Outputs forward(const Batch& batch) override {
    const at::Tensor logits = layer(batch["x"]);
    summarize_scalar("largest", options.scalar_of_vector ? logits[0] : logits.max());
    summarize_tensor("first", options.tensor_of_scalar ? logits[0][0] : logits[0]);
    return {{"loss", torch::cross_entropy_loss(logits, batch["label"])}};
  }

  Options options;
  torch::nn::Linear layer{4, 3};
};

struct TensorLogger final : Logger {
  struct Options {
    std::vector<std::vector<int64_t>>* shapes = nullptr;
  };

  explicit TensorLogger(const Options& o) : options(o) {}

  void log(const Metrics& values, int64_t) override {
    for (const Metrics::Item& item : values.items()) {
      if (const auto* tensor = std::get_if<at::Tensor>(&item.second)) {
        options.shapes->push_back(tensor->sizes().vec());
      }
    }
  }

  Options options;
};

}  // namespace

TEST_SUITE_BEGIN("callbacks/summaries");

TEST_CASE("T125: what a model summarizes is logged each update, equally under both backends") {
  std::vector<std::pair<int64_t, double>> largest[2];
  for (const bool traced : {false, true}) {
    const TempDir dir;
    std::vector<MemoryLogger::Entry> entries;
    std::vector<std::vector<int64_t>> shapes;
    MemoryLogger::Options memory;
    memory.entries = &entries;
    TrainerOptions options = tiny_options(dir / "run");
    options.backend.mode = traced ? "traced" : "eager";
    options.model = use<Summarizing>();
    options.loggers = {use<MemoryLogger>(memory), use<TensorLogger>({&shapes})};
    options.loop.max_steps = 6;
    options.logging.log_steps = 1;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"), {tiny_loader("val", 2)});
    largest[traced ? 1 : 0] = values_of(entries, "largest");
    CHECK(values_of(entries, "val/largest").size() == 1);
    REQUIRE(shapes.size() == 7);
    CHECK(shapes[0] == std::vector<int64_t>{3});
  }
  REQUIRE(largest[0].size() == 6);
  CHECK(largest[0].front().first == 1);
  CHECK(largest[0] == largest[1]);
}

TEST_CASE("T125: a scalar must have no dimensions; a tensor without gets one, and a warning") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 1;
  options.model = use<Summarizing>({true, false});
  {
    Trainer trainer(options, quiet_log());
    CHECK_THROWS_AS(trainer.fit(tiny_loader("train")), UsageError);
  }
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::string> warnings;
  options.model = use<Summarizing>({false, true});
  options.loggers = {use<TensorLogger>({&shapes})};
  Trainer trainer(options, quiet_log(&warnings));
  trainer.fit(tiny_loader("train"));
  REQUIRE(shapes.size() == 1);
  CHECK(shapes[0] == std::vector<int64_t>{1});
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("first") != std::string::npos);
}

TEST_CASE("T125: outside of a step there is nobody to summarize for") {
  CHECK_THROWS_AS(summarize_scalar("x", torch::ones({})), UsageError);
  CHECK_THROWS_AS(summarize_tensor("x", torch::ones({2})), UsageError);
}

TEST_SUITE_END();
