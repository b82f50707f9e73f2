#include "optim/param_group_option.h"

#include <doctest/doctest.h>

#include "optim/adam.h"
#include "optim/register.h"

using namespace rondo;

namespace {

ConfigValue text(const char* value) {
  return ConfigValue(std::string(value));
}

/// { params = ["*.bias"], weight_decay = 0.0, tag = "no_decay" }
ConfigTable no_decay() {
  ConfigTable group;
  group.set("params", ConfigValue(ConfigArray{text("*.bias"), text("norm.*")}));
  group.set("weight_decay", ConfigValue(0.0));
  group.set("tag", text("no_decay"));
  return group;
}

std::vector<Fault> faults_of(ConfigTable group) {
  std::vector<Fault> faults;
  FaultSink sink("params", faults);
  ParamGroupListOption({"lr", "weight_decay"})
      .read(ConfigValue(ConfigArray{ConfigValue(std::move(group))}), sink);
  return faults;
}

}  // namespace

TEST_SUITE_BEGIN("optim/param_group_option");

TEST_CASE("a group is read from a config: globs, tag, and any number of the optimizer") {
  std::vector<Fault> faults;
  FaultSink sink("params", faults);
  const ParamGroupListOption option({"lr", "weight_decay"});
  const ConfigValue written(ConfigArray{ConfigValue(no_decay())});
  const auto groups = option.read(written, sink);
  CHECK(faults.empty());
  REQUIRE(groups);
  REQUIRE(groups->size() == 1);
  CHECK(groups->front().params == std::vector<std::string>{"*.bias", "norm.*"});
  CHECK(groups->front().tag == "no_decay");
  REQUIRE(groups->front().numbers.size() == 1);
  CHECK(groups->front().numbers[0] == std::pair<std::string, double>("weight_decay", 0.0));
  FaultSink again("params", faults);
  const auto round_trip = option.read(option.write(*groups), again);
  CHECK(option.write(*round_trip).to_text() == option.write(*groups).to_text());
}

TEST_CASE("an unknown number is a fault at its place, with a suggestion") {
  ConfigTable group = no_decay();
  group.set("weigth_decay", ConfigValue(0.0), {"run.toml", 4, 9});
  const std::vector<Fault> faults = faults_of(group);
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].position.line == 4);
  CHECK(faults[0].path == "params[0]");
  CHECK(faults[0].message.find("\"weight_decay\"") != std::string::npos);
}

TEST_CASE("values of a wrong kind and a group without globs are faults") {
  ConfigTable group = no_decay();
  group.set("weight_decay", text("none"));
  CHECK(faults_of(group).size() == 1);
  group = no_decay();
  group.set("params", text("*.bias"));
  CHECK(faults_of(group).size() == 1);
  group = no_decay();
  group.erase("params");
  CHECK(faults_of(group).size() == 1);
}

TEST_CASE("an optimizer's table takes groups") {
  Registry<Optimizer> registry("optimizer");
  register_builtin_optimizers(registry);
  ConfigTable keys;
  keys.set("lr", ConfigValue(0.1));
  keys.set("params", ConfigValue(ConfigArray{ConfigValue(no_decay())}));
  std::vector<Fault> faults;
  FaultSink sink("optimizer", faults);
  const auto factory = registry.read_named("AdamW", {}, keys, sink);
  CHECK(faults.empty());
  REQUIRE(factory);
  const auto& options = *static_cast<const AdamW::Options*>(factory.options());
  REQUIRE(options.params.size() == 1);
  CHECK(options.params[0].tag == "no_decay");
}

TEST_SUITE_END();
