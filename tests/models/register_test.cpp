#include "models/losses/register.h"
#include "models/register.h"

#include <doctest/doctest.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include "models/builtin/mlp.h"

using namespace rondo;

TEST_SUITE_BEGIN("models/register");

TEST_CASE("every built-in model can be named, and its options have docs and valid defaults") {
  Registry<Criterion> losses("loss");
  register_builtin_losses(losses);
  Registry<Model> registry("model");
  register_builtin_models(registry, losses);
  CHECK(registry.entries().size() >= 16);
  for (const auto& entry : registry.entries()) {
    CHECK(!entry.doc.empty());
    for (const OptionKey& key : entry.keys->keys()) {
      CAPTURE(entry.name + "." + key.name);
      CHECK(!key.doc.empty());
    }
  }
}

TEST_CASE("a model is built from its keys") {
  Registry<Criterion> losses("loss");
  register_builtin_losses(losses);
  Registry<Model> registry("model");
  register_builtin_models(registry, losses);
  ConfigArray sizes;
  for (const int64_t size : {6, 5, 2}) {
    sizes.push_back(ConfigValue(size));
  }
  ConfigTable keys;
  keys.set("sizes", ConfigValue(std::move(sizes)));
  keys.set("activation", ConfigValue(std::string("gelu")));
  std::vector<Fault> faults;
  FaultSink sink("", faults);
  const auto factory = registry.read_named("Mlp", {}, keys, sink);
  REQUIRE(faults.empty());
  CHECK(factory.make()->module().named_parameters()["layer1.weight"].size(0) == 2);
  keys.set("activation", ConfigValue(std::string("swish")));
  registry.read_named("Mlp", {}, keys, sink);
  CHECK(faults.size() == 1);
}

TEST_SUITE_END();
