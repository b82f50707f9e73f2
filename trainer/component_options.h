#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/named_component_option.h"
#include "core/options.h"
#include "core/registry.h"
#include "trainer/core_callbacks.h"
#include "trainer/section_reader.h"
#include "trainer/trainer_options.h"

namespace rondo {

// How the values of keys name components, beside what core/registry.h has.

/// A list of components in which `Name = false` takes a default away; defaults that are neither
/// named nor taken away follow the list.
template <class Base>
class ListWithDefaults {
 public:
  ListWithDefaults(const Registry<Base>& registry, std::vector<std::string> defaults)
      : list_(registry), registry_(&registry), defaults_(std::move(defaults)) {}

  std::string name() const { return list_.name(); }

  std::optional<std::vector<Factory<Base>>> read(const ConfigValue& value,
                                                 FaultSink& faults) const {
    const auto* array = value.get_if<ConfigArray>();
    if (array == nullptr) {
      return detail::mismatch(value, name(), faults);
    }
    std::vector<std::string> named;
    ConfigArray wanted;
    for (const ConfigValue& element : *array) {
      const auto* table = element.get_if<ConfigTable>();
      const bool is_single = table != nullptr && table->entries().size() == 1;
      const bool* on = is_single ? table->entries().front().value.template get_if<bool>() : nullptr;
      const auto* entry = is_single ? registry_->find(table->entries().front().key) : nullptr;
      if (entry != nullptr) {
        named.push_back(entry->name);
      }
      if (entry == nullptr || on == nullptr || *on) {
        wanted.push_back(element);
      }
    }
    for (const std::string& name : defaults_) {
      if (std::find(named.begin(), named.end(), name) == named.end()) {
        wanted.push_back(component(name, true));
      }
    }
    return list_.read(ConfigValue(std::move(wanted), value.position()), faults);
  }

  /// Writes the defaults that are missing as taken away, so that reading it gives the same list.
  ConfigValue write(const std::vector<Factory<Base>>& factories) const {
    ConfigValue written = list_.write(factories);
    for (const std::string& name : defaults_) {
      const bool is_there =
          std::any_of(factories.begin(), factories.end(), [&](const Factory<Base>& factory) {
            return factory.name() == name;
          });
      if (!is_there) {
        written.get_if<ConfigArray>()->push_back(component(name, false));
      }
    }
    return written;
  }

 private:
  static ConfigValue component(const std::string& name, bool is_on) {
    ConfigTable table;
    table.set(name, ConfigValue(is_on));
    return ConfigValue(std::move(table));
  }

  ComponentListOption<Base> list_;
  const Registry<Base>* registry_;
  std::vector<std::string> defaults_;
};

/// The list of algorithms. A name of Composer's that is another kind of component here gets an
/// error that says which.
class AlgorithmsOption {
 public:
  explicit AlgorithmsOption(const Registry<Algorithm>& registry)
      : list_(registry), registry_(&registry) {}

  std::string name() const { return list_.name(); }

  std::optional<std::vector<Factory<Algorithm>>> read(const ConfigValue& value,
                                                      FaultSink& faults) const;

  ConfigValue write(const std::vector<Factory<Algorithm>>& algorithms) const {
    return list_.write(algorithms);
  }

 private:
  ComponentListOption<Algorithm> list_;
  const Registry<Algorithm>* registry_;
};

/// `{ critic = { params = ["critic.*"], Adam = { lr = 1e-4 } } }`: several optimizers by name.
class OptimizersOption {
 public:
  using Optimizers = std::vector<NamedOptimizer>;

  explicit OptimizersOption(const Registry<Optimizer>& registry) : registry_(&registry) {}

  static std::string name() {
    return "a table of names, each a table with params and one optimizer";
  }

  std::optional<Optimizers> read(const ConfigValue& value, FaultSink& faults) const {
    const auto* table = value.get_if<ConfigTable>();
    if (table == nullptr) {
      return detail::mismatch(value, name(), faults);
    }
    Optimizers optimizers;
    for (const ConfigEntry& entry : table->entries()) {
      FaultSink inside = faults.inside(entry.key);
      if (!is_label(entry.key)) {
        inside.add(entry.key_position, "a name has letters, digits, \"_\" and \"-\"");
      }
      read_one(entry, optimizers, inside);
    }
    return optimizers;
  }

  ConfigValue write(const Optimizers& optimizers) const {
    ConfigTable table;
    for (const NamedOptimizer& one : optimizers) {
      ConfigValue written = registry_->write(one.optimizer);
      written.get_if<ConfigTable>()->set("params",
                                         OptionType<std::vector<std::string>>::write(one.params));
      table.set(one.name, std::move(written));
    }
    return optimizers.empty() ? ConfigValue() : ConfigValue(std::move(table));
  }

 private:
  void read_one(const ConfigEntry& entry, Optimizers& optimizers, FaultSink& faults) const {
    const auto* given = entry.value.get_if<ConfigTable>();
    const ConfigValue* params = given != nullptr ? given->find("params") : nullptr;
    if (params == nullptr) {
      faults.add(entry.key_position,
                 "missing key \"params\": globs of the parameters that it trains");
      return;
    }
    FaultSink of_params = faults.inside("params");
    const auto globs = OptionType<std::vector<std::string>>::read(*params, of_params);
    ConfigTable component = *given;
    component.erase("params");
    Factory<Optimizer> optimizer =
        registry_->read_single(ConfigValue(std::move(component), entry.value.position()), faults);
    if (globs && optimizer) {
      optimizers.push_back({entry.key, *globs, std::move(optimizer)});
    }
  }

  const Registry<Optimizer>* registry_;
};

/// `{ run_schedule = { MySchedule = { … } } }`: core callbacks that stand in for those of slots.
class SlotsOption {
 public:
  using Slots = std::map<std::string, Factory<CoreCallback>>;

  explicit SlotsOption(const Registry<CoreCallback>& registry) : registry_(&registry) {}

  static std::string name() { return "a table of slots, each naming one core callback"; }

  std::optional<Slots> read(const ConfigValue& value, FaultSink& faults) const {
    const auto* table = value.get_if<ConfigTable>();
    if (table == nullptr) {
      return detail::mismatch(value, name(), faults);
    }
    std::vector<std::string> known;
    for (const CoreSlot& slot : core_slots()) {
      known.emplace_back(slot.name);
    }
    refuse_unknown(*table, known, faults);
    Slots slots;
    for (const ConfigEntry& entry : table->entries()) {
      FaultSink inside = faults.inside(entry.key);
      slots[entry.key] = registry_->read_single(entry.value, inside);
    }
    return slots;
  }

  ConfigValue write(const Slots& slots) const {
    ConfigTable table;
    for (const auto& slot : slots) {
      table.set(slot.first, registry_->write(slot.second));
    }
    return slots.empty() ? ConfigValue() : ConfigValue(std::move(table));
  }

 private:
  const Registry<CoreCallback>* registry_;
};

}  // namespace rondo
