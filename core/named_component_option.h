#pragma once

#include <optional>
#include <string>
#include <utility>

#include "core/options.h"
#include "core/registry.h"

namespace rondo {

/// `{ name = "Mlp", sizes = [784, 10] }`: a component named beside its own keys.
template <class Base>
class NamedComponentOption {
 public:
  explicit NamedComponentOption(const Registry<Base>& registry) : registry_(&registry) {}

  std::string name() const { return "a table with \"name\", the name of a " + registry_->family(); }

  std::optional<Factory<Base>> read(const ConfigValue& value, FaultSink& faults) const {
    const auto* table = value.get_if<ConfigTable>();
    const ConfigValue* named = table != nullptr ? table->find("name") : nullptr;
    const std::string* component = named != nullptr ? named->get_if<std::string>() : nullptr;
    if (component == nullptr) {
      return detail::mismatch(value, name(), faults);
    }
    ConfigTable keys = *table;
    keys.erase("name");
    Factory<Base> factory = registry_->read_named(*component, named->position(), keys, faults);
    return factory ? std::optional<Factory<Base>>(std::move(factory)) : std::nullopt;
  }

  ConfigValue write(const Factory<Base>& factory) const {
    if (!factory) {
      return ConfigValue();
    }
    const ConfigValue written = registry_->write(factory);
    const ConfigEntry& component = written.get_if<ConfigTable>()->entries().front();
    ConfigTable table;
    table.set("name", ConfigValue(component.key));
    if (const auto* keys = component.value.get_if<ConfigTable>()) {
      for (const ConfigEntry& key : keys->entries()) {
        table.set(key.key, key.value);
      }
    }
    return ConfigValue(std::move(table));
  }

 private:
  const Registry<Base>* registry_;
};

}  // namespace rondo
