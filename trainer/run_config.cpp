#include "trainer/run_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "configs/toml_file.h"
#include "core/error.h"
#include "core/glob.h"
#include "data/data_loader.h"

namespace rondo {

namespace {

const ConfigTable kNoKeys;

/// The table at `key`, an empty one when it is absent; a fault when it is something else.
const ConfigTable& table_at(const ConfigTable& parent, const char* key, FaultSink& faults) {
  const ConfigValue* value = parent.find(key);
  if (value == nullptr) {
    return kNoKeys;
  }
  if (const auto* table = value->get_if<ConfigTable>()) {
    return *table;
  }
  FaultSink inside = faults.inside(key);
  detail::add_mismatch(*value, "a table", "", inside);
  return kNoKeys;
}

void refuse_unknown(const ConfigTable& table,
                    const std::vector<std::string>& known,
                    FaultSink& faults) {
  for (const ConfigEntry& entry : table.entries()) {
    if (std::find(known.begin(), known.end(), entry.key) == known.end()) {
      faults.add(entry.key_position,
                 fmt::format("unknown key \"{}\"{}", entry.key, suggestion(entry.key, known)));
    }
  }
}

/// Reads the sections of a file that run something; remembers loaders by label for those that
/// follow.
class SectionReader {
 public:
  SectionReader(const Registries& registries, FaultSink& faults)
      : registries_(registries), faults_(faults) {}

  std::optional<RunConfig::Fit> fit(const ConfigTable& section, const SourcePosition& at);
  std::optional<RunConfig::Validate> validate(const ConfigTable& section, const SourcePosition& at);
  std::optional<RunConfig::ValidateAll> validate_all(const ConfigTable& section);

  /// The sections with every default, for the resolved config.
  const ConfigTable& resolved() const { return resolved_; }

 private:
  std::optional<DataLoader> loader(const ConfigValue& value,
                                   FaultSink& faults,
                                   ConfigValue& resolved);
  std::optional<DataLoader> labelled(const std::string& label,
                                     const ConfigValue& value,
                                     FaultSink& faults) const;
  Loaders loaders(const ConfigTable& section,
                  const char* key,
                  FaultSink& faults,
                  ConfigTable& resolved);
  LoadFrom from(const ConfigTable& section, FaultSink& faults) const;

  const Registries& registries_;
  FaultSink& faults_;
  std::map<std::string, DataLoader> by_label_;
  ConfigTable resolved_;
};

std::optional<DataLoader> SectionReader::labelled(const std::string& label,
                                                  const ConfigValue& value,
                                                  FaultSink& faults) const {
  const auto known = by_label_.find(label);
  if (known != by_label_.end()) {
    return known->second;
  }
  std::vector<std::string> labels;
  for (const auto& item : by_label_) {
    labels.push_back(item.first);
  }
  faults.add(
      value.position(),
      fmt::format(
          "no loader of [trainer.fit] is labelled \"{}\"{}", label, suggestion(label, labels)));
  return std::nullopt;
}

std::optional<DataLoader> SectionReader::loader(const ConfigValue& value,
                                                FaultSink& faults,
                                                ConfigValue& resolved) {
  if (const std::string* label = value.get_if<std::string>()) {
    resolved = value;
    return labelled(*label, value, faults);
  }
  const auto* table = value.get_if<ConfigTable>();
  const ConfigValue* dataset = table != nullptr ? table->find("dataset") : nullptr;
  const std::string* name = dataset != nullptr ? dataset->get_if<std::string>() : nullptr;
  if (name == nullptr) {
    detail::add_mismatch(
        value,
        "a table with \"dataset\", the name of a dataset, or the label of a loader",
        "",
        faults);
    return std::nullopt;
  }
  const KeyTable<LoaderOptions> batching = loader_keys();
  ConfigTable own = *table;
  ConfigTable of_loader;
  for (const OptionKey& key : batching.keys()) {
    if (const ConfigEntry* entry = own.find_entry(key.name)) {
      of_loader.set(key.name, entry->value, entry->key_position);
      own.erase(key.name);
    }
  }
  std::string label;
  if (const ConfigValue* given = own.find("label")) {
    FaultSink inside = faults.inside("label");
    label = OptionType<std::string>::read(*given, inside).value_or("");
  }
  own.erase("label");
  own.erase("dataset");
  LoaderOptions options;
  batching.read(of_loader, value.position(), &options, faults);
  const Factory<DataSource> source =
      registries_.datasets.read_named(*name, dataset->position(), own, faults);
  if (!source) {
    return std::nullopt;
  }
  ConfigTable full;
  full.set("label", ConfigValue(label));
  full.set("dataset", ConfigValue(source.name()));
  const ConfigValue written = registries_.datasets.write(source);
  if (const auto* keys =
          written.get_if<ConfigTable>()->entries().front().value.get_if<ConfigTable>()) {
    for (const ConfigEntry& key : keys->entries()) {
      full.set(key.key, key.value);
    }
  }
  const ConfigTable batching_values = batching.write(&options);
  for (const ConfigEntry& key : batching_values.entries()) {
    full.set(key.key, key.value);
  }
  resolved = ConfigValue(std::move(full));
  DataLoader made(label, source, options);
  if (!label.empty()) {
    by_label_.insert_or_assign(label, made);
  }
  return made;
}

Loaders SectionReader::loaders(const ConfigTable& section,
                               const char* key,
                               FaultSink& faults,
                               ConfigTable& resolved) {
  Loaders found;
  const ConfigValue* value = section.find(key);
  if (value == nullptr) {
    return found;
  }
  ConfigArray written;
  FaultSink inside = faults.inside(key);
  const auto* array = value->get_if<ConfigArray>();
  const ConfigArray all = array != nullptr ? *array : ConfigArray{*value};
  for (size_t i = 0; i < all.size(); ++i) {
    FaultSink element = array != nullptr ? inside.inside(fmt::format("[{}]", i)) : inside;
    ConfigValue one;
    if (auto made = loader(all[i], element, one)) {
      found.push_back(std::move(*made));
      written.push_back(std::move(one));
    }
  }
  resolved.set(key, ConfigValue(std::move(written)));
  return found;
}

LoadFrom SectionReader::from(const ConfigTable& section, FaultSink& faults) const {
  const ConfigValue* value = section.find("ckpt_path");
  if (value == nullptr) {
    return {};
  }
  if (const std::string* path = value->get_if<std::string>()) {
    return {*path};
  }
  if (const bool* on = value->get_if<bool>(); on != nullptr && !*on) {
    return LoadFrom::nothing();
  }
  FaultSink inside = faults.inside("ckpt_path");
  detail::add_mismatch(*value, "a path, or false to load nothing", "", inside);
  return {};
}

std::optional<RunConfig::Fit> SectionReader::fit(const ConfigTable& section,
                                                 const SourcePosition& at) {
  FaultSink faults = faults_.inside("fit");
  refuse_unknown(section, {"train_dataloader", "val_dataloader", "ckpt_path"}, faults);
  ConfigTable written;
  const ConfigValue* train = section.find("train_dataloader");
  std::optional<DataLoader> training;
  if (train == nullptr) {
    faults.add(at, "missing key \"train_dataloader\": expected a table with \"dataset\"");
  } else {
    FaultSink inside = faults.inside("train_dataloader");
    ConfigValue resolved;
    training = loader(*train, inside, resolved);
    written.set("train_dataloader", std::move(resolved));
  }
  Loaders val = loaders(section, "val_dataloader", faults, written);
  const LoadFrom start = from(section, faults);
  if (const ConfigValue* path = section.find("ckpt_path")) {
    written.set("ckpt_path", *path);
  }
  resolved_.set("fit", ConfigValue(std::move(written)));
  return training ? std::optional<RunConfig::Fit>({std::move(*training), std::move(val), start})
                  : std::nullopt;
}

std::optional<RunConfig::Validate> SectionReader::validate(const ConfigTable& section,
                                                           const SourcePosition& at) {
  FaultSink faults = faults_.inside("validate");
  refuse_unknown(section, {"val_dataloader", "ckpt_path"}, faults);
  const ConfigValue* value = section.find("val_dataloader");
  const LoadFrom start = from(section, faults);
  if (value == nullptr) {
    faults.add(at,
               "missing key \"val_dataloader\": expected a table with \"dataset\", or the label of "
               "a loader");
    return std::nullopt;
  }
  FaultSink inside = faults.inside("val_dataloader");
  ConfigTable written;
  ConfigValue resolved;
  std::optional<DataLoader> made = loader(*value, inside, resolved);
  written.set("val_dataloader", std::move(resolved));
  if (const ConfigValue* path = section.find("ckpt_path")) {
    written.set("ckpt_path", *path);
  }
  resolved_.set("validate", ConfigValue(std::move(written)));
  return made ? std::optional<RunConfig::Validate>({std::move(*made), start}) : std::nullopt;
}

std::optional<RunConfig::ValidateAll> SectionReader::validate_all(const ConfigTable& section) {
  FaultSink faults = faults_.inside("validate_all");
  refuse_unknown(section, {"val_dataloaders", "ckpt_paths"}, faults);
  RunConfig::ValidateAll all;
  ConfigTable written;
  all.loaders = loaders(section, "val_dataloaders", faults, written);
  if (const ConfigValue* paths = section.find("ckpt_paths")) {
    FaultSink inside = faults.inside("ckpt_paths");
    const bool is_single = paths->get_if<std::string>() != nullptr;
    const ConfigValue list =
        is_single ? ConfigValue(ConfigArray{*paths}, paths->position()) : *paths;
    all.checkpoints = OptionType<std::vector<std::string>>::read(list, inside);
    written.set("ckpt_paths", list);
  }
  resolved_.set("validate_all", ConfigValue(std::move(written)));
  return all;
}

/// `device = "cpu"` beside the tables is short for `backend.device`.
void take_device_shorthand(ConfigTable& init, FaultSink& faults) {
  const ConfigEntry* entry = init.find_entry("device");
  if (entry == nullptr) {
    return;
  }
  const ConfigEntry device = *entry;
  init.erase("device");
  if (init.find("backend") == nullptr) {
    init.set("backend", ConfigValue(ConfigTable{}, device.key_position), device.key_position);
  }
  auto* backend = init.find("backend")->get_if<ConfigTable>();
  if (backend == nullptr) {
    return;  // reported when the table is read
  }
  const ConfigValue* same = backend->find("device");
  if (same != nullptr && same->to_text() != device.value.to_text()) {
    faults.add(device.key_position,
               fmt::format("device is {} here and {} in backend; give one of them",
                           device.value.to_text(),
                           same->to_text()));
  }
  backend->set("device", device.value, device.key_position);
}

}  // namespace

std::vector<std::filesystem::path> plugins_of(const ConfigValue& root) {
  std::vector<Fault> faults;
  std::vector<std::filesystem::path> plugins;
  const auto* table = root.get_if<ConfigTable>();
  if (const ConfigValue* value = table != nullptr ? table->find("plugins") : nullptr) {
    FaultSink sink("plugins", faults);
    plugins = OptionType<std::vector<std::filesystem::path>>::read(*value, sink).value_or(plugins);
  }
  if (!faults.empty()) {
    throw ConfigError(std::move(faults));
  }
  return plugins;
}

RunConfig read_run_config(const ConfigValue& root, const Registries& registries) {
  std::vector<Fault> found;
  FaultSink top("", found);
  RunConfig run;
  const ConfigTable& file =
      root.get_if<ConfigTable>() != nullptr ? *root.get_if<ConfigTable>() : kNoKeys;
  refuse_unknown(file, {"trainer", "plugins"}, top);
  if (file.find("trainer") == nullptr) {
    top.add(root.position(),
            "missing table [trainer]: a run is described by [trainer.init] and what to do with it");
  }
  const ConfigTable& trainer = table_at(file, "trainer", top);
  FaultSink faults = top.inside("trainer");
  refuse_unknown(trainer, {"init", "fit", "validate", "validate_all"}, faults);
  if (file.find("trainer") != nullptr && trainer.find("init") == nullptr) {
    faults.add(file.find("trainer")->position(),
               "missing table [trainer.init]: model, optimizer and the rest of the run");
  }
  ConfigTable init = table_at(trainer, "init", faults);
  FaultSink init_faults = faults.inside("init");
  take_device_shorthand(init, init_faults);
  const KeyTable<TrainerOptions> keys = trainer_keys(registries);
  for (const char* list : {"callbacks", "loggers"}) {
    if (init.find(list) == nullptr) {
      init.set(list, ConfigValue(ConfigArray{}));
    }
  }
  if (const ConfigValue* given = trainer.find("init")) {
    keys.read(init, given->position(), &run.init, init_faults);
  }
  SectionReader sections(registries, faults);
  const auto position = [&](const char* name) { return trainer.find(name)->position(); };
  if (trainer.find("fit") != nullptr) {
    run.fit = sections.fit(table_at(trainer, "fit", faults), position("fit"));
  }
  if (trainer.find("validate") != nullptr) {
    run.validate = sections.validate(table_at(trainer, "validate", faults), position("validate"));
  }
  if (trainer.find("validate_all") != nullptr) {
    run.validate_all = sections.validate_all(table_at(trainer, "validate_all", faults));
  }
  if (!found.empty()) {
    throw ConfigError(std::move(found));
  }
  ConfigTable resolved;
  if (const ConfigValue* plugins = file.find("plugins")) {
    resolved.set("plugins", *plugins);
  }
  ConfigTable resolved_trainer;
  resolved_trainer.set("init", ConfigValue(keys.write(&run.init)));
  for (const ConfigEntry& section : sections.resolved().entries()) {
    resolved_trainer.set(section.key, section.value);
  }
  resolved.set("trainer", ConfigValue(std::move(resolved_trainer)));
  run.init.config_text = write_toml(resolved);
  return run;
}

}  // namespace rondo
