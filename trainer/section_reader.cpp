#include "trainer/section_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/glob.h"
#include "core/home_path.h"

namespace rondo {

namespace {

constexpr const char* kSubset = "subset_num_batches";
constexpr const char* kReturns = "return_outputs";

OptionKey described(std::string name, std::string type, std::string doc, bool is_required = false) {
  OptionKey key;
  key.name = std::move(name);
  key.type = std::move(type);
  key.doc = std::move(doc);
  key.is_required = is_required;
  return key;
}

/// The names of a section's keys.
std::vector<std::string> keys_of_section(std::string_view name) {
  std::vector<std::string> names;
  for (const RunSection& section : run_sections()) {
    for (const OptionKey& key : section.keys) {
      if (section.name == name) {
        names.push_back(key.name);
      }
    }
  }
  return names;
}

/// Takes the keys of loaders out of a table that also holds those of a data set.
ConfigTable take_loader_keys(ConfigTable& table, const KeyList& batching) {
  ConfigTable taken;
  for (const OptionKey& key : batching.keys()) {
    if (const ConfigEntry* entry = table.find_entry(key.name)) {
      taken.set(key.name, entry->value, entry->key_position);
      table.erase(key.name);
    }
  }
  return taken;
}

/// Names the keys that neither the data set nor its loader has, and takes them out.
void take_unknown_keys(ConfigTable& table,
                       const KeyList& dataset,
                       const KeyList& batching,
                       FaultSink& faults) {
  std::vector<std::string> known = {"dataset", "label"};
  for (const KeyList* keys : {&dataset, &batching}) {
    for (const OptionKey& key : keys->keys()) {
      known.push_back(key.name);
    }
  }
  refuse_unknown(table, known, faults);
  const ConfigTable all = table;
  for (const ConfigEntry& entry : all.entries()) {
    if (std::find(known.begin(), known.end(), entry.key) == known.end()) {
      table.erase(entry.key);
    }
  }
}

/// A loader as a config with every default would have it.
ConfigValue resolved_loader(const std::string& label,
                            const Factory<DataSource>& source,
                            const ConfigTable& batching,
                            const Registry<DataSource>& datasets) {
  ConfigTable full;
  full.set("label", ConfigValue(label));
  full.set("dataset", ConfigValue(source.name()));
  const ConfigValue written = datasets.write(source);
  if (const auto* keys =
          written.get_if<ConfigTable>()->entries().front().value.get_if<ConfigTable>()) {
    for (const ConfigEntry& key : keys->entries()) {
      full.set(key.key, key.value);
    }
  }
  for (const ConfigEntry& key : batching.entries()) {
    full.set(key.key, key.value);
  }
  return ConfigValue(std::move(full));
}

/// Where a loader says its label, as a key or as a whole.
SourcePosition label_position(const ConfigValue& loader) {
  const auto* table = loader.get_if<ConfigTable>();
  const ConfigValue* label = table != nullptr ? table->find("label") : nullptr;
  return label != nullptr ? label->position() : loader.position();
}

/// A fault when a list has the loader's label already: the metrics of both would have one name.
void check_once(const DataLoader& loader,
                const Loaders& before,
                const SourcePosition& at,
                FaultSink& faults) {
  const bool is_known = std::any_of(before.begin(), before.end(), [&](const DataLoader& other) {
    return other.label() == loader.label();
  });
  if (is_known && !loader.label().empty()) {
    faults.add(at, fmt::format("\"{}\" is in this list already", loader.label()));
  }
}

}  // namespace

const std::vector<RunSection>& run_sections() {
  const std::string loader = "a loader, or the label of one";
  const std::string loaders = "a loader, or a list of loaders and labels";
  const std::string file = "a path, or false";
  const OptionKey subset =
      described(kSubset, "an integer >= 1", "batches of the loader to take; absent: all");
  const auto checkpoint = [&](const std::string& newest) {
    return described("ckpt_path", file, "checkpoint to load; false: none; absent: " + newest);
  };
  static const std::vector<RunSection> sections = {
      {"fit",
       "trains",
       {described("train_dataloader", "a loader", "training data", true),
        described("val_dataloader", loaders, "data of the validations in between"),
        checkpoint("the newest of the run")}},
      {"validate",
       "validates one checkpoint",
       {described("val_dataloader", loader, "data to validate on", true),
        checkpoint("the newest of the run"),
        subset}},
      {"validate_all",
       "validates many checkpoints and makes a table of them",
       {described("val_dataloaders", loaders, "data to validate on"),
        described("ckpt_paths",
                  "a glob, or a list of globs",
                  "checkpoints to validate; absent: all of the run"),
        subset}},
      {"predict",
       "writes the model's outputs to a file",
       {described("dataloader", loader, "data to predict", true),
        checkpoint("the newest of the run"),
        subset,
        described(kReturns,
                  "true or false",
                  "whether outputs are joined into one file; false: a file a batch, so that memory "
                  "holds one of them")}}};
  return sections;
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

std::optional<DataLoader> SectionReader::labelled(const std::string& label,
                                                  const ConfigValue& value,
                                                  FaultSink& faults) const {
  const auto known = by_label_.find(label);
  if (known != by_label_.end()) {
    const Labelled& found = known->second;
    if (!found.is_one) {
      faults.add(value.position(),
                 fmt::format("\"{}\" is the label of several loaders, the first at {}: give them "
                             "labels of their own",
                             label,
                             to_string(found.at)));
      return std::nullopt;
    }
    return found.loader;
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
  LoaderOptions options;
  batching.read(take_loader_keys(own, batching), value.position(), &options, faults);
  std::string label;
  if (const ConfigValue* given = own.find("label")) {
    FaultSink inside = faults.inside("label");
    label = OptionType<std::string>::read(*given, inside).value_or("");
  }
  own.erase("label");
  own.erase("dataset");
  if (const auto* entry = registries_.datasets.find(*name)) {
    take_unknown_keys(own, *entry->keys, batching, faults);
  }
  const Factory<DataSource> source =
      registries_.datasets.read_named(*name, dataset->position(), own, faults);
  if (!source) {
    return std::nullopt;
  }
  resolved = resolved_loader(label, source, batching.write(&options), registries_.datasets);
  DataLoader made(label, source, options);
  if (!label.empty()) {
    remember(made, resolved, label_position(value));
  }
  return made;
}

void SectionReader::remember(const DataLoader& loader,
                             const ConfigValue& resolved,
                             const SourcePosition& at) {
  const auto [known, is_new] =
      by_label_.emplace(loader.label(), Labelled{loader, resolved.to_text(), at, true});
  if (!is_new && known->second.text != resolved.to_text()) {
    known->second.is_one = false;
  }
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
      check_once(*made, found, label_position(all[i]), element);
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
    return {expand_home(*path)};
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
  refuse_unknown(section, keys_of_section("fit"), faults);
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

std::optional<int64_t> SectionReader::subset_of(const char* name, const ConfigTable& section) {
  const ConfigValue* const given = section.find(kSubset);
  if (given == nullptr) {
    return std::nullopt;
  }
  FaultSink inside = faults_.inside(name).inside(kSubset);
  const std::optional<int64_t> subset = OptionType<int64_t>::read(*given, inside);
  if (subset && *subset < 1) {
    inside.add(given->position(), fmt::format("expected batches, at least 1, got {}", *subset));
  }
  return subset;
}

std::optional<std::pair<DataLoader, LoadFrom>> SectionReader::single_loader(
    const char* name, const char* key, const ConfigTable& section, const SourcePosition& at) {
  FaultSink faults = faults_.inside(name);
  const std::vector<std::string> known = keys_of_section(name);
  refuse_unknown(section, known, faults);
  const ConfigValue* value = section.find(key);
  const LoadFrom start = from(section, faults);
  if (value == nullptr) {
    faults.add(at,
               fmt::format("missing key \"{}\": expected a table with \"dataset\", or the label of "
                           "a loader",
                           key));
    return std::nullopt;
  }
  FaultSink inside = faults.inside(key);
  ConfigTable written;
  ConfigValue resolved;
  std::optional<DataLoader> made = loader(*value, inside, resolved);
  written.set(key, std::move(resolved));
  for (const std::string& other : known) {
    const ConfigValue* const given = section.find(other);
    if (given != nullptr && other != key) {
      written.set(other, *given);
    }
  }
  resolved_.set(name, ConfigValue(std::move(written)));
  return made ? std::optional(std::pair(std::move(*made), start)) : std::nullopt;
}

std::optional<RunConfig::Validate> SectionReader::validate(const ConfigTable& section,
                                                           const SourcePosition& at) {
  auto found = single_loader("validate", "val_dataloader", section, at);
  const std::optional<int64_t> subset = subset_of("validate", section);
  return found
             ? std::optional<RunConfig::Validate>({std::move(found->first), found->second, subset})
             : std::nullopt;
}

std::optional<RunConfig::Predict> SectionReader::predict(const ConfigTable& section,
                                                         const SourcePosition& at) {
  auto found = single_loader("predict", "dataloader", section, at);
  PredictOptions options;
  options.subset_num_batches = subset_of("predict", section);
  if (const ConfigValue* returns = section.find(kReturns)) {
    FaultSink inside = faults_.inside("predict").inside(kReturns);
    options.return_outputs = OptionType<bool>::read(*returns, inside).value_or(true);
  }
  return found ? std::optional<RunConfig::Predict>(
                     {std::move(found->first), found->second, std::move(options)})
               : std::nullopt;
}

std::optional<RunConfig::ValidateAll> SectionReader::validate_all(const ConfigTable& section) {
  FaultSink faults = faults_.inside("validate_all");
  refuse_unknown(section, keys_of_section("validate_all"), faults);
  RunConfig::ValidateAll all;
  ConfigTable written;
  all.loaders = loaders(section, "val_dataloaders", faults, written);
  if (const ConfigValue* paths = section.find("ckpt_paths")) {
    FaultSink inside = faults.inside("ckpt_paths");
    const bool is_single = paths->get_if<std::string>() != nullptr;
    const ConfigValue list =
        is_single ? ConfigValue(ConfigArray{*paths}, paths->position()) : *paths;
    if (const auto globs = OptionType<std::vector<std::filesystem::path>>::read(list, inside)) {
      all.checkpoints.emplace();
      for (const std::filesystem::path& glob : *globs) {
        all.checkpoints->push_back(glob.string());
      }
    }
    written.set("ckpt_paths", list);
  }
  all.subset_num_batches = subset_of("validate_all", section);
  if (const ConfigValue* subset = section.find(kSubset)) {
    written.set(kSubset, *subset);
  }
  resolved_.set("validate_all", ConfigValue(std::move(written)));
  return all;
}

}  // namespace rondo
