#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "configs/toml_file.h"
#include "core/state_dict.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/registries.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr int64_t kComponentUpdates = 6;

/// What components need to do something in a tiny run; the others run with their defaults.
const std::map<std::string, std::string> kKeys = {
    {"Alert", "metric = \"loss\"\nwhen = \"> 100\""},
    {"Distillation", "teacher = { Mlp = { sizes = [4, 8, 3], input = \"x\" } }"},
    {"EarlyStopper", "metric = \"val/loss\"\ndirection = \"min\"\npatience = \"50ep\""},
    {"Evaluator",
     "loader = \"val\"\nmetrics = [{ Mean = { output = \"loss\", label = \"mean\" } "
     "}]\nevery_n_vals = 2"},
    {"KeepBestCheckpoints", "metric = \"val/loss\"\ndirection = \"min\""},
    {"ImageVisualizer", "input = \"x\"\nevery = 1000"},
    {"Lora", "modules = [\"0\"]"},
    {"LoadCheckpointStates", "states = [\"model\", \"optimizer\", \"global_step\", \"timestamp\"]"},
    {"NormalizeInputs", "input = \"x\"\nshape = [4]"},
    {"NormTensorListener", "tensor_names = [\"grad/*\"]"},
    {"NotifyCommand", "command = \"true\""},
    {"RunTimeLimit", "limit_s = 1e6"},
    {"SkipSamples", "samples = 1\nafter = 1000"},
    {"SummaryTensorListener", "tensor_names = [\"*\"]"},
    {"ThresholdStopper", "metric = \"val/loss\"\ndirection = \"max\"\nthreshold = 1e9"},
};

bool runs_here(const std::string& name) {
  // They want a Gpt and a text, a script, eager steps in float64, recorded steps, and servers.
  return name != "SampleText" && name != "SaveScript" && name != "CheckGradients" &&
         name != "ExportForInference" && name != "NotifyMail" && name != "NotifyWebhook";
}

/// LoadCheckpointStates leaves parts of a checkpoint out.
bool can_resume(const std::string& name) {
  return name != "LoadCheckpointStates";
}

template <class Base>
Factory<Base> from_keys(const Registry<Base>& registry, const std::string& name) {
  const auto keys = kKeys.find(name);
  const ConfigValue toml = parse_toml(keys == kKeys.end() ? "" : keys->second, "kKeys");
  std::vector<Fault> faults;
  FaultSink sink(registry.family(), faults);
  Factory<Base> made = registry.read_named(name, {}, *toml.get_if<ConfigTable>(), sink);
  const std::string fault = faults.empty() ? "" : faults.front().message;
  REQUIRE_MESSAGE(fault.empty(), "say in kKeys what it needs: " << fault);
  return made;
}

using Add = std::function<void(TrainerOptions&)>;

/// The state after so many updates, without those of callbacks, some of which have clocks.
StateDict trained(const TempDir& dir,
                  const Add& add_component,
                  const std::string& mode,
                  int64_t updates) {
  TrainerOptions options = tiny_options(dir / "run");
  options.backend.mode = mode;
  options.loop.max_steps = updates;
  options.loop.eval_frequency = int64_t{2};
  options.checkpoint.steps = int64_t{3};
  add_component(options);
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"), {tiny_loader("val", 6, 2, 2)});
  CHECK(trainer.state().timestamp.update == updates);
  StateDict bits = bits_of(trainer);
  bits.erase("callbacks");
  return bits;
}

void check_traced(const Add& add_component) {
  const TempDir eager;
  const TempDir traced;
  CHECK(first_difference(trained(eager, add_component, "eager", kComponentUpdates),
                         trained(traced, add_component, "traced", kComponentUpdates)) == "");
}

void check_resumed(const Add& add_component) {
  const TempDir whole;
  const TempDir resumed;
  trained(resumed, add_component, "traced", kComponentUpdates / 2);
  CHECK(first_difference(trained(whole, add_component, "traced", kComponentUpdates),
                         trained(resumed, add_component, "traced", kComponentUpdates)) == "");
}

}  // namespace

TEST_SUITE_BEGIN("trainer/every_component");

TEST_CASE("with each callback that a config can name traced equals eager, and resumed unstopped") {
  Registries registries;
  register_builtins(registries);
  CHECK(registries.callbacks.entries().size() > 15);
  for (const auto& entry : registries.callbacks.entries()) {
    if (!runs_here(entry.name)) {
      continue;
    }
    CAPTURE(entry.name);
    const Factory<Callback> callback = from_keys(registries.callbacks, entry.name);
    const Add add = [&](TrainerOptions& options) { options.callbacks = {callback}; };
    check_traced(add);
    if (can_resume(entry.name)) {
      check_resumed(add);
    }
  }
}

TEST_CASE("with each step that a config can name traced equals eager, and resumed unstopped") {
  Registries registries;
  register_builtins(registries);
  CHECK(registries.steps.entries().size() > 2);
  for (const auto& entry : registries.steps.entries()) {
    CAPTURE(entry.name);
    const Factory<TrainStep> step = from_keys(registries.steps, entry.name);
    const Add add = [&](TrainerOptions& options) { options.step = step; };
    check_traced(add);
    check_resumed(add);
  }
}

TEST_CASE("with each logger that a config can name traced equals eager, and resumed unstopped") {
  Registries registries;
  register_builtins(registries);
  CHECK(registries.loggers.entries().size() > 3);
  for (const auto& entry : registries.loggers.entries()) {
    CAPTURE(entry.name);
    const Factory<Logger> logger = from_keys(registries.loggers, entry.name);
    const Add add = [&](TrainerOptions& options) { options.loggers = {logger}; };
    check_traced(add);
    check_resumed(add);
  }
}

TEST_SUITE_END();
