#include "support/every_optimizer.h"

#include <doctest/doctest.h>

#include "core/config_value.h"
#include "optim/register.h"

namespace rondo::test {

namespace {

/// The defaults with everything on.
ConfigTable thrown(const ConfigTable& defaults) {
  ConfigTable keys = defaults;
  for (const ConfigEntry& entry : defaults.entries()) {
    if (const bool* is_on = entry.value.get_if<bool>()) {
      keys.set(entry.key, ConfigValue(!*is_on));
    } else if (entry.key == "weight_decay") {
      keys.set(entry.key, ConfigValue(0.01));
    } else if (entry.key == "momentum") {
      keys.set(entry.key, ConfigValue(0.9));
    }
  }
  return keys;
}

RegisteredOptimizer made(const Registry<Optimizer>& registry,
                         const std::string& name,
                         const ConfigTable& keys) {
  std::vector<Fault> faults;
  FaultSink sink("optimizer", faults);
  RegisteredOptimizer optimizer = {
      name, ConfigValue(keys).to_text(), registry.read_named(name, {}, keys, sink)};
  REQUIRE(faults.empty());
  return optimizer;
}

}  // namespace

std::vector<RegisteredOptimizer> every_optimizer() {
  Registry<Optimizer> registry("optimizer");
  register_builtin_optimizers(registry);
  std::vector<RegisteredOptimizer> all;
  for (const Registry<Optimizer>::Entry& entry : registry.entries()) {
    all.push_back(made(registry, entry.name, entry.defaults()));
    all.push_back(made(registry, entry.name, thrown(entry.defaults())));
  }
  return all;
}

}  // namespace rondo::test
