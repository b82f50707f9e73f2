#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/component_examples.h"
#include "cli/families.h"
#include "cli/reference_pages.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/glob.h"
#include "core/json.h"
#include "core/registry.h"
#include "trainer/run_config.h"

namespace rondo {

namespace {

/// What stands for the keys that every run has, beside the names of components.
constexpr const char* kTrainer = "trainer";

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

/// Prints the component of this name, if the family has one.
template <class Base>
void print_one(const Registry<Base>& registry, const std::string& name) {
  if (const auto* entry = registry.find(name)) {
    std::cout << fmt::format("{} ({}): {}\n", entry->name, registry.family(), entry->doc);
    print_keys(keys_of<Base>(*entry), entry->defaults(), 2);
    const std::string example = example_of(registry.family(), entry->name);
    std::cout << (example.empty() ? "" : "\n") << example;
  }
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

template <class Base>
std::string json_of(const std::string& family, const typename Registry<Base>::Entry& entry) {
  return fmt::format("{{\"family\": {}, \"name\": {}, \"doc\": {}, \"keys\": {}, \"example\": {}}}",
                     json_string(family),
                     json_string(entry.name),
                     json_string(entry.doc),
                     json_of(keys_of<Base>(entry), entry.defaults()),
                     json_string(example_of(family, entry.name)));
}

/// Adds an object for the component of this name, if the family has one; for "" for all of them.
template <class Base>
void add_json(const Registry<Base>& registry,
              const std::string& name,
              std::vector<std::string>& objects) {
  const auto* const asked = registry.find(name);
  for (const auto& entry : registry.entries()) {
    if (name.empty() || &entry == asked) {
      objects.push_back(json_of<Base>(registry.family(), entry));
    }
  }
}

/// All that a config can hold, or of it what this name stands for, as one JSON object on one line.
void print_json(const Registries& registries, const std::string& name) {
  std::vector<std::string> members;
  if (name != kTrainer) {
    std::vector<std::string> components;
    for_each_family(registries,
                    [&](const auto& registry) { add_json(registry, name, components); });
    members.push_back(fmt::format("\"components\": [{}]", fmt::join(components, ", ")));
  }
  if (name.empty() || name == kTrainer) {
    const KeyTable<TrainerOptions> keys = trainer_keys(registries);
    const TrainerOptions defaults = config_defaults(registries);
    members.push_back("\"trainer\": " + json_of(keys.keys(), keys.write(&defaults)));
  }
  std::cout << fmt::format("{{{}}}\n", fmt::join(members, ", "));
}

void require_known(const Registries& registries, const std::string& name) {
  bool is_known = name == kTrainer;
  std::vector<std::string> names{kTrainer};
  for_each_family(registries, [&](const auto& registry) {
    is_known = is_known || registry.find(name) != nullptr;
    for (const auto& entry : registry.entries()) {
      names.push_back(entry.name);
    }
  });
  if (!is_known) {
    throw UsageError(fmt::format("there is no component \"{}\"{}", name, suggestion(name, names)));
  }
}

void write_pages(const Registries& registries, const std::filesystem::path& folder) {
  FileSystem& files = *real_file_system();
  files.create_directories(folder);
  for (const auto& [name, text] : reference_pages(registries)) {
    write_atomically(files, folder / name, text);
  }
}

}  // namespace

int run_describe(const CommandLine& line, Registries& registries) {
  for (const std::string& plugin : line.plugins) {
    load_plugin(plugin, registries);
  }
  if (!line.name.empty()) {
    require_known(registries, line.name);
  }
  if (!line.output.empty()) {
    write_pages(registries, line.output);
  } else if (line.json) {
    print_json(registries, line.name);
  } else if (line.name.empty()) {
    for_each_family(registries, [](const auto& registry) { list(registry); });
    std::cout << "trainer                    every key of [trainer.init]: rondo describe trainer\n";
  } else if (line.name == kTrainer) {
    const KeyTable<TrainerOptions> keys = trainer_keys(registries);
    const TrainerOptions defaults = config_defaults(registries);
    print_keys(keys.keys(), keys.write(&defaults), 0);
  } else {
    for_each_family(registries, [&](const auto& registry) { print_one(registry, line.name); });
  }
  return 0;
}

}  // namespace rondo
