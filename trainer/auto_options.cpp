#include "trainer/auto_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "checkpoint/checkpoint_file.h"
#include "configs/toml_file.h"
#include "core/dataset_facts.h"
#include "core/error.h"

namespace rondo {

namespace {

bool is_auto(const ConfigValue& value) {
  const auto* word = value.get_if<std::string>();
  return word != nullptr && *word == "auto";
}

template <class T>
ConfigValue list_of(const std::vector<T>& values) {
  return OptionType<std::vector<T>>::write(values);
}

/// The fact that an option of this name stands for; nothing when the data does not know it.
std::optional<ConfigValue> fact_for(const std::string& option, const DatasetFacts& facts) {
  const bool knows_label = facts.classes || !facts.targets.empty();
  if (option == "categories" && facts.features) {
    return list_of(facts.categories);
  }
  if (option == "classes" && knows_label) {
    return ConfigValue(facts.classes.value_or(0));
  }
  if (option == "targets" && knows_label) {
    return ConfigValue(static_cast<int64_t>(facts.targets.size()));
  }
  if (option == "class_weights" && knows_label) {
    return list_of(facts.class_weights);
  }
  if (option == "image_shape" && !facts.image_shape.empty()) {
    return list_of(facts.image_shape);
  }
  const auto size = size_named(option, facts);
  return size ? std::optional<ConfigValue>(*size) : std::nullopt;
}

/// The section's loader, and what it begins with.
struct Start {
  const DataLoader* loader = nullptr;
  LoadFrom from = {};
};

Start start_of(const RunConfig& run) {
  if (run.fit) {
    return {&run.fit->train, run.fit->from};
  }
  if (run.validate) {
    return {&run.validate->loader, run.validate->from};
  }
  if (run.predict) {
    return {&run.predict->loader, run.predict->from};
  }
  const bool has_loaders = run.validate_all && !run.validate_all->loaders.empty();
  return {has_loaders ? &run.validate_all->loaders.front() : nullptr, {}};
}

/// What the data of the run's checkpoint knew; nothing when there is none that says so.
std::optional<DatasetFacts> facts_of_checkpoint(const RunConfig& run, const LoadFrom& from) {
  std::optional<std::filesystem::path> path = from.path();
  if (!path && !from.is_nothing() && run.init.checkpoint.autoload_last_checkpoint) {
    path = index_of(run).newest();
  }
  if (!path) {
    return std::nullopt;
  }
  try {
    const StateDict state = read_checkpoint(*path);
    const StateValue* const data = state.find("dataloader");
    if (data == nullptr) {
      return std::nullopt;
    }
    for (const StateDict::Item& item : data->as_dict().items()) {
      if (item.second.is_dict() && item.second.as_dict().contains("facts")) {
        return facts_from(item.second.as_dict().at("facts").as_dict());
      }
    }
  } catch (const Error&) {
    return std::nullopt;  // whoever loads it says why, or takes the one before it
  }
  return std::nullopt;
}

DatasetFacts facts_of(const RunConfig& run) {
  const Start start = start_of(run);
  if (auto facts = facts_of_checkpoint(run, start.from)) {
    return *facts;
  }
  return start.loader != nullptr ? start.loader->facts() : DatasetFacts();
}

/// The text with another model.
std::string with_model(const std::string& text, const ConfigValue& model) {
  ConfigValue root = parse_toml(text, "resolved config");
  auto* const tables = root.get_if<ConfigTable>();
  auto* const trainer = tables->find("trainer")->get_if<ConfigTable>();
  trainer->find("init")->get_if<ConfigTable>()->set("model", model);
  return write_toml(*tables);
}

}  // namespace

void resolve_auto(RunConfig& run, const Registries& registries) {
  Factory<Model>& model = run.init.model;
  ConfigValue written = registries.models.write(model);
  ConfigEntry component = written.get_if<ConfigTable>()->entries().front();
  auto* const keys = component.value.get_if<ConfigTable>();
  const auto is_open = [](const ConfigEntry& key) { return is_auto(key.value); };
  if (keys == nullptr || std::none_of(keys->entries().begin(), keys->entries().end(), is_open)) {
    return;
  }
  const DatasetFacts facts = facts_of(run);
  std::vector<Fault> faults;
  FaultSink sink("trainer.init.model", faults);
  const ConfigTable open = *keys;
  for (const ConfigEntry& key : open.entries()) {
    const auto fact = is_open(key) ? fact_for(key.key, facts) : std::nullopt;
    if (fact) {
      keys->set(key.key, *fact);
    } else if (is_open(key)) {
      sink.add({},
               fmt::format("{0} is \"auto\", but the data does not define its {0}; set it ({1})",
                           key.key,
                           model.origin()));
    }
  }
  const Factory<Model> resolved =
      faults.empty() ? registries.models.read_named(component.key, {}, *keys, sink) : model;
  if (!faults.empty()) {
    throw ConfigError(std::move(faults));
  }
  model = resolved;
  if (!run.init.config_text.empty()) {
    const ConfigTable init = trainer_keys(registries).write(&run.init);
    run.init.config_text = with_model(run.init.config_text, *init.find("model"));
  }
}

}  // namespace rondo
