#include "callbacks/builtin/count_params.h"

#include <doctest/doctest.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "models/module_model.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Two layers of 2 x 3 + 2, the second one frozen, and a buffer of 4.
class Layers final : public ModuleModel {
 public:
  Layers() {
    for (const char* name : {"layer0", "layer1"}) {
      const torch::nn::Linear layer(3, 2);
      register_module(name, layer);
      if (std::string(name) == "layer1") {
        layer->weight.set_requires_grad(false);
        layer->bias.set_requires_grad(false);
      }
    }
    register_buffer("steps", torch::zeros({4}, torch::kLong));
  }

  Outputs forward(const Batch&) override { return {}; }
};

std::vector<std::string> names_of(const ParameterCounts& counts) {
  std::vector<std::string> names;
  for (const ParameterCounts::Row& row : counts.rows) {
    names.push_back(row.name);
  }
  return names;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/count_params");

TEST_CASE("T124: totals match; the trainable one leaves frozen parameters and buffers out") {
  Layers model;
  const ParameterCounts counts = CountParams(CountParams::Options{}).count(model);
  CHECK(counts.elements == 2 * 8 + 4);
  CHECK(counts.trainable == 8);
  REQUIRE(counts.rows.size() == 5);
  CHECK(counts.rows[0].name == "layer0.weight");
  CHECK(counts.rows[0].shape == "2, 3");
  CHECK(counts.rows[0].bytes == 24);
  CHECK(counts.rows[4].type == "buffer");
}

TEST_CASE("T124: names that become equal make one row, rows are ordered as asked for") {
  Layers model;
  CountParams::Options options;
  options.search_and_replace = {{"layer\\d", "layers"}, {"\\.(weight|bias)", ""}};
  options.order_by = "elements";
  options.descending = true;
  const ParameterCounts counts = CountParams(options).count(model);
  CHECK(names_of(counts) == std::vector<std::string>{"layers", "steps"});
  CHECK(counts.rows[0].type == "group");
  CHECK(counts.rows[0].elements == 16);
  CHECK(counts.rows[0].trainable == 8);
  CHECK(counts.elements == 20);
  options.descending = false;
  CHECK(names_of(CountParams(options).count(model)) == std::vector<std::string>{"steps", "layers"});
}

TEST_CASE("the table is kept beside the run and its totals are logged") {
  const TempDir dir;
  std::vector<MemoryLogger::Entry> entries;
  MemoryLogger::Options memory;
  memory.entries = &entries;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<CountParams>()};
  options.loggers = {use<MemoryLogger>(memory)};
  const Trainer trainer(options, quiet_log());
  CHECK(std::filesystem::exists(trainer.state().artifact_dir / "parameter_counts.txt"));
  CHECK(values_of(entries, "parameter_counts/total").at(0).second == 15.0);
}

TEST_CASE("options that mean nothing are refused") {
  CountParams::Options options;
  options.search_and_replace = {{"alone"}};
  CHECK_THROWS_AS(CountParams{options}, UsageError);
  options.search_and_replace = {{"(", "x"}};
  CHECK_THROWS_AS(CountParams{options}, UsageError);
  options.search_and_replace = {};
  options.order_by = "age";
  CHECK_THROWS_AS(CountParams{options}, UsageError);
}

TEST_SUITE_END();
