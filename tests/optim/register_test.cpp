#include "optim/register.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include "optim/adam.h"
#include "optim/schedulers.h"
#include "optim/sgd.h"
#include "parameters.h"

using namespace rondo;
using namespace rondo::test;

namespace {

Factory<Optimizer> read(const Registry<Optimizer>& registry,
                        const std::string& name,
                        const ConfigTable& keys,
                        std::vector<Fault>& faults) {
  FaultSink sink("optimizer", faults);
  return registry.read_named(name, {}, keys, sink);
}

}  // namespace

TEST_SUITE_BEGIN("optim/register");

TEST_CASE("every registered optimizer is built from its defaults and trains") {
  Registry<Optimizer> registry("optimizer");
  register_builtin_optimizers(registry);
  CHECK(registry.entries().size() >= 19);
  for (const auto& entry : registry.entries()) {
    CAPTURE(entry.name);
    std::vector<Fault> faults;
    const auto factory = read(registry, entry.name, {}, faults);
    REQUIRE(factory);
    CHECK(faults.empty());
    const auto optimizer = factory.make();
    const NamedTensors params = parameters(1);
    const at::Tensor before = params[1].second.detach().clone();
    optimizer->attach(params);
    give_gradients(params, params, 1);
    optimizer->step();
    CHECK_FALSE(at::equal(params[1].second, before));
    const Optimizer& made = *optimizer;
    CHECK(registry.find(typeid(made)) == &entry);
  }
}

TEST_CASE("names are those of PyTorch") {
  Registry<Optimizer> registry("optimizer");
  register_builtin_optimizers(registry);
  CHECK(registry.find("SGD")->type == typeid(Sgd));
  CHECK(registry.find("Adam")->type == typeid(Adam));
  CHECK(registry.find("AdamW")->type == typeid(AdamW));
}

TEST_CASE("values out of range are faults before anything is built") {
  Registry<Optimizer> registry("optimizer");
  register_builtin_optimizers(registry);
  const auto count = [&](const char* name, const char* key, ConfigValue value) {
    ConfigTable keys;
    keys.set(key, std::move(value));
    std::vector<Fault> faults;
    read(registry, name, keys, faults);
    return faults.size();
  };
  const auto pair = [](double a, double b) {
    return ConfigValue(ConfigArray{ConfigValue(a), ConfigValue(b)});
  };
  CHECK(count("AdamW", "lr", ConfigValue(-1.0)) == 1);
  CHECK(count("AdamW", "eps", ConfigValue(-1.0)) == 1);
  CHECK(count("AdamW", "weight_decay", ConfigValue(-1.0)) == 1);
  CHECK(count("Adam", "betas", pair(0.9, 1.0)) == 1);
  CHECK(count("Adam", "betas", pair(0.9, 0.95)) == 0);
  CHECK(count("Adam", "betas", ConfigValue(0.9)) == 1);
  CHECK(count("SGD", "lr", ConfigValue(-1.0)) == 1);
  CHECK(count("SGD", "momentum", ConfigValue(-1.0)) == 1);
  CHECK(count("SGD", "dampening", ConfigValue(2.0)) == 1);
  CHECK(count("SGD", "nesterov", ConfigValue(1.0)) == 1);
}

TEST_CASE("every registered scheduler is built and written back with every default") {
  Registry<Scheduler> registry("scheduler");
  register_builtin_schedulers(registry);
  CHECK(registry.entries().size() >= 20);
  for (const auto& entry : registry.entries()) {
    CAPTURE(entry.name);
    CHECK(entry.keys->keys().size() >= 6);
  }
  CHECK(
      registry.write(use<LinearLR>({0.1, 0.0, "2ep"})).to_text() ==
      "{ LinearLR = { initial_learning_rate = 0.1, end_learning_rate = 0.0, total_iters = \"2ep\", "
      "param_group_key = \"lr\", param_group_tags = [], optimizer = \"\", relative = false, warmup "
      "= 0, scale_warmup "
      "= "
      "false } }");
}

TEST_SUITE_END();
