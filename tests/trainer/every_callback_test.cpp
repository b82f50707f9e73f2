#include <doctest/doctest.h>

#include <map>
#include <string>

#include "configs/toml_file.h"
#include "core/state_dict.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/registries.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr int64_t kUpdates = 6;

/// What callbacks need to do something in a tiny run; the others run with their defaults.
const std::map<std::string, std::string> kKeys = {
    {"EarlyStopper", "metric = \"val/loss\"\ndirection = \"min\"\npatience = \"50ep\""},
    {"KeepBestCheckpoints", "metric = \"val/loss\"\ndirection = \"min\""},
    {"LoadCheckpointStates", "states = [\"model\", \"optimizer\", \"global_step\", \"timestamp\"]"},
    {"NotifyCommand", "command = \"true\""},
    {"ThresholdStopper", "metric = \"val/loss\"\ndirection = \"max\"\nthreshold = 1e9"},
};

/// SampleText wants a Gpt and a text. LoadCheckpointStates leaves parts of a checkpoint out.
bool runs_here(const std::string& name) {
  return name != "SampleText";
}

bool can_resume(const std::string& name) {
  return name != "LoadCheckpointStates";
}

Factory<Callback> from_keys(const Registry<Callback>& registry, const std::string& name) {
  const auto keys = kKeys.find(name);
  std::vector<Fault> faults;
  FaultSink sink("callbacks", faults);
  const ConfigValue toml = parse_toml(keys == kKeys.end() ? "" : keys->second, "kKeys");
  Factory<Callback> callback = registry.read_named(name, {}, *toml.get_if<ConfigTable>(), sink);
  const std::string fault = faults.empty() ? "" : faults.front().message;
  CHECK_MESSAGE(fault.empty(), "say in kKeys what it needs: " << fault);
  return callback;
}

/// The state after so many updates, without those of callbacks, some of which have clocks.
StateDict trained(const TempDir& dir,
                  const Factory<Callback>& callback,
                  const std::string& mode,
                  int64_t updates) {
  TrainerOptions options = tiny_options(dir / "run");
  options.backend.mode = mode;
  options.callbacks = {callback};
  options.loop.max_steps = updates;
  options.loop.eval_frequency = int64_t{2};
  options.checkpoint.steps = int64_t{3};
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"), {tiny_loader("val", 6, 2, 2)});
  CHECK(trainer.state().timestamp.update == updates);
  StateDict bits = bits_of(trainer);
  bits.erase("callbacks");
  return bits;
}

}  // namespace

TEST_SUITE_BEGIN("trainer/every_callback");

TEST_CASE("with each callback that a config can name traced equals eager, and resumed unstopped") {
  Registries registries;
  register_builtins(registries);
  int tried = 0;
  for (const auto& entry : registries.callbacks.entries()) {
    if (!runs_here(entry.name)) {
      continue;
    }
    CAPTURE(entry.name);
    const Factory<Callback> callback = from_keys(registries.callbacks, entry.name);
    REQUIRE(callback);
    const TempDir eager_dir;
    const StateDict eager = trained(eager_dir, callback, "eager", kUpdates);
    const TempDir traced_dir;
    CHECK(first_difference(eager, trained(traced_dir, callback, "traced", kUpdates)) == "");
    if (can_resume(entry.name)) {
      const TempDir resumed_dir;
      trained(resumed_dir, callback, "traced", kUpdates / 2);
      CHECK(first_difference(eager, trained(resumed_dir, callback, "traced", kUpdates)) == "");
    }
    ++tried;
  }
  CHECK(tried >= 15);
}

TEST_SUITE_END();
