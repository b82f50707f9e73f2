#include <fmt/format.h>

#include <iostream>

#include "cli/commands.h"
#include "core/error.h"
#include "core/glob.h"
#include "core/json.h"
#include "trainer/run_config.h"

namespace rondo {

namespace {

/// One key a line: `  lr (a number >= 0, default 0.001): step size`.
void print_keys(const std::vector<OptionKey>& keys, const ConfigTable& defaults, int indent) {
  for (const OptionKey& key : keys) {
    const ConfigValue* value = defaults.find(key.name);
    std::string rule = key.type + (key.check.empty() ? "" : " " + key.check);
    if (key.is_required) {
      rule += ", required";
    } else if (key.nested.empty() && value != nullptr) {
      rule += ", default " + value->to_text();
    }
    std::cout << fmt::format("{:{}}{} ({}): {}\n", "", indent, key.name, rule, key.doc);
    if (!key.nested.empty()) {
      const auto* inner = value != nullptr ? value->get_if<ConfigTable>() : nullptr;
      print_keys(key.nested, inner != nullptr ? *inner : ConfigTable{}, indent + 2);
    }
  }
}

template <class Base>
void list(const Registry<Base>& registry) {
  if (registry.entries().empty()) {
    return;
  }
  std::cout << registry.family() << "s:\n";
  for (const auto& entry : registry.entries()) {
    std::cout << fmt::format("  {:<24} {}\n", entry.name, entry.doc);
  }
}

/// Prints the component of this name.
/// \return false when the family has none
template <class Base>
bool print_one(const Registry<Base>& registry, const std::string& name) {
  const auto* entry = registry.find(name);
  if (entry == nullptr) {
    return false;
  }
  std::cout << fmt::format("{} ({}): {}\n", entry->name, registry.family(), entry->doc);
  print_keys(entry->keys->keys(), entry->defaults(), 2);
  return true;
}

/// `{"name": "lr", "type": "a number", "check": ">= 0", "default": "0.001", "doc": "step size"}` a
/// key.
std::string json_of(const std::vector<OptionKey>& keys, const ConfigTable& defaults) {
  std::string text;
  for (const OptionKey& key : keys) {
    const ConfigValue* value = defaults.find(key.name);
    const auto* inner = value != nullptr ? value->get_if<ConfigTable>() : nullptr;
    text += fmt::format(
        "{}{{\"name\": {}, \"type\": {}, \"check\": {}, \"required\": {}, \"default\": {}, "
        "\"doc\": {}",
        text.empty() ? "" : ", ",
        json_string(key.name),
        json_string(key.type),
        json_string(key.check),
        key.is_required,
        value != nullptr ? json_string(value->to_text()) : std::string("null"),
        json_string(key.doc));
    if (!key.nested.empty()) {
      text += ", \"keys\": " + json_of(key.nested, inner != nullptr ? *inner : ConfigTable{});
    }
    text += "}";
  }
  return "[" + text + "]";
}

/// Every component of a family with its keys.
template <class Base>
std::string json_of(const Registry<Base>& registry) {
  std::string text;
  for (const auto& entry : registry.entries()) {
    text += fmt::format("{}{{\"family\": {}, \"name\": {}, \"doc\": {}, \"keys\": {}}}",
                        text.empty() ? "" : ", ",
                        json_string(registry.family()),
                        json_string(entry.name),
                        json_string(entry.doc),
                        json_of(entry.keys->keys(), entry.defaults()));
  }
  return text;
}

template <class Base>
void add_names(const Registry<Base>& registry, std::vector<std::string>& names) {
  for (const auto& entry : registry.entries()) {
    names.push_back(entry.name);
  }
}

/// Calls `visit` with every family.
template <class Visit>
void for_each_family(const Registries& registries, Visit visit) {
  visit(registries.models);
  visit(registries.datasets);
  visit(registries.optimizers);
  visit(registries.schedulers);
  visit(registries.callbacks);
  visit(registries.loggers);
  visit(registries.slots);
}

/// Everything that a config can hold, as one JSON object on one line.
void print_json(const Registries& registries) {
  std::string components;
  for_each_family(registries, [&](const auto& registry) {
    const std::string family = json_of(registry);
    components += (components.empty() || family.empty() ? "" : ", ") + family;
  });
  const KeyTable<TrainerOptions> keys = trainer_keys(registries);
  const TrainerOptions defaults;
  std::cout << fmt::format("{{\"components\": [{}], \"trainer\": {}}}\n",
                           components,
                           json_of(keys.keys(), keys.write(&defaults)));
}

}  // namespace

int run_describe(const CommandLine& line, Registries& registries) {
  for (const std::string& plugin : line.plugins) {
    load_plugin(plugin, registries);
  }
  if (line.json) {
    print_json(registries);
    return 0;
  }
  if (line.name.empty()) {
    for_each_family(registries, [](const auto& registry) { list(registry); });
    std::cout << "trainer                    every key of [trainer.init]: rondo describe trainer\n";
    return 0;
  }
  if (line.name == "trainer") {
    const KeyTable<TrainerOptions> keys = trainer_keys(registries);
    const TrainerOptions defaults;
    print_keys(keys.keys(), keys.write(&defaults), 0);
    return 0;
  }
  bool is_known = false;
  std::vector<std::string> names{"trainer"};
  for_each_family(registries, [&](const auto& registry) {
    is_known = print_one(registry, line.name) || is_known;
    add_names(registry, names);
  });
  if (!is_known) {
    throw UsageError(
        fmt::format("there is no component \"{}\"{}", line.name, suggestion(line.name, names)));
  }
  return 0;
}

}  // namespace rondo
