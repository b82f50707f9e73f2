#include "trainer/run_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "callbacks/callback_map.h"
#include "callbacks/core/checkpoint_callback.h"
#include "callbacks/core/logging_callback.h"
#include "checkpoint/checkpoint_name.h"
#include "configs/toml_file.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/glob.h"
#include "loops/validate_all.h"
#include "trainer/core_callbacks.h"
#include "trainer/pymarlin_table.h"
#include "trainer/section_reader.h"

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

/// `learning_rate` is `lr`, in the tables of optimizers and their groups.
void take_learning_rate(ConfigValue& value, FaultSink& faults) {
  if (auto* const array = value.get_if<ConfigArray>()) {
    for (ConfigValue& element : *array) {
      take_learning_rate(element, faults);
    }
    return;
  }
  auto* const table = value.get_if<ConfigTable>();
  if (table == nullptr) {
    return;
  }
  ConfigTable renamed;
  for (const ConfigEntry& entry : table->entries()) {
    ConfigValue inner = entry.value;
    take_learning_rate(inner, faults);
    const bool is_alias = entry.key == "learning_rate";
    if (is_alias && table->find("lr") != nullptr) {
      faults.add(entry.key_position, "learning_rate and lr are one key; give one of them");
    } else {
      renamed.set(is_alias ? "lr" : entry.key, std::move(inner), entry.key_position);
    }
  }
  *table = std::move(renamed);
}

/// The tables that a phase has, and no others.
void check_tables(const ConfigValue& trainer, FaultSink& faults) {
  const auto* tables = trainer.get_if<ConfigTable>();
  if (tables == nullptr) {
    detail::add_mismatch(trainer, "a table", "", faults);
    return;
  }
  refuse_unknown(*tables, {"init", "fit", "validate", "validate_all", "predict"}, faults);
  if (tables->find("init") == nullptr) {
    faults.add(trainer.position(),
               "missing table [trainer.init]: model, optimizer and the rest of the run");
  }
}

/// Where `init` has a key of a section, or the section, or begins.
SourcePosition place_of(const ConfigTable& init,
                        const SourcePosition& begin,
                        const char* section,
                        const char* key) {
  const ConfigEntry* entry = init.find_entry(section);
  if (entry == nullptr) {
    return begin;
  }
  const auto* table = entry->value.get_if<ConfigTable>();
  const ConfigEntry* inner = table != nullptr ? table->find_entry(key) : nullptr;
  return inner != nullptr ? inner->value.position() : entry->key_position;
}

/// Keys that exclude each other, texts with rules of their own: found by making what the Trainer
/// will make of them.
void check_together(const ConfigTable& init,
                    const SourcePosition& begin,
                    const TrainerOptions& options,
                    FaultSink& faults) {
  const auto check = [&](const char* section, const char* key, const auto& make) {
    try {
      make();
    } catch (const UsageError& error) {
      FaultSink inside = faults.inside(section);
      inside.add(place_of(init, begin, section, key), error.what());
    }
  };
  check("loop", "", [&] { static_cast<void>(TrainingLoop(options.loop)); });
  check("logging", "log_steps", [&] { LoggingCallback::check(options.logging); });
  check("checkpoint", "steps", [&] { CheckpointCallback::check(options.checkpoint); });
  check("checkpoint", "checkpoint_name", [&] {
    static_cast<void>(CheckpointName(options.checkpoint.checkpoint_name));
  });
  check("precision", "", [&] { check_clipping(options.precision); });
  if (init.find("optimizer") != nullptr && init.find("optimizers") != nullptr) {
    faults.add(init.find_entry("optimizers")->key_position,
               "optimizer and optimizers exclude each other; give one of them");
  }
  if (init.find("model_dir") != nullptr && options.model_dir.empty()) {
    faults.add(place_of(init, begin, "model_dir", ""),
               "model_dir is empty: it is the directory for checkpoints and logs");
  }
}

/// Labels that two callbacks have, or one of them and a slot.
void check_labels(const ConfigTable& init,
                  const SourcePosition& begin,
                  const TrainerOptions& options,
                  FaultSink& faults) {
  CallbackNames names;
  for (const CoreSlot& slot : core_slots()) {
    names.add(slot.name, "");
  }
  const auto check = [&](const char* list, const auto& factories) {
    try {
      for (const auto& factory : factories) {
        names.add(factory.name(), factory.label());
      }
    } catch (const UsageError& error) {
      FaultSink inside = faults.inside(list);
      inside.add(place_of(init, begin, list, ""), error.what());
    }
  };
  check("algorithms", options.algorithms);
  check("callbacks", options.callbacks);
  check("loggers", options.loggers);
}

/// Where `init` sets what core callbacks are made of.
std::map<std::string, std::string> origins_of(const ConfigTable& init) {
  std::map<std::string, std::string> origins;
  for (const CoreSlot& slot : core_slots()) {
    if (const ConfigEntry* entry = init.find_entry(slot.name)) {
      origins[slot.name] = to_string(entry->key_position);
    }
  }
  return origins;
}

TrainerOptions read_init(const ConfigTable& trainer,
                         const Registries& registries,
                         FaultSink& faults) {
  TrainerOptions options;
  const ConfigValue* given = trainer.find("init");
  if (given == nullptr) {
    return options;
  }
  ConfigTable init = table_at(trainer, "init", faults);
  FaultSink inside = faults.inside("init");
  take_device_shorthand(init, inside);
  for (const char* key : {"optimizer", "optimizers"}) {
    if (ConfigValue* const optimizers = init.find(key)) {
      FaultSink in_key = inside.inside(key);
      take_learning_rate(*optimizers, in_key);
    }
  }
  for (const char* list : {"callbacks", "loggers"}) {
    if (init.find(list) == nullptr) {
      init.set(list, ConfigValue(ConfigArray{}));  // so that it gets its defaults
    }
  }
  trainer_keys(registries).read(init, given->position(), &options, inside);
  check_together(init, given->position(), options, inside);
  check_labels(init, given->position(), options, inside);
  options.origins = origins_of(init);
  return options;
}

void read_sections(const ConfigTable& trainer,
                   SectionReader& sections,
                   RunConfig& run,
                   FaultSink& faults) {
  const auto section = [&](const char* name) -> const ConfigTable& {
    return table_at(trainer, name, faults);
  };
  if (const ConfigValue* fit = trainer.find("fit")) {
    run.fit = sections.fit(section("fit"), fit->position());
    const ConfigTable& init = table_at(trainer, "init", faults);
    if (init.find("optimizer") == nullptr && init.find("optimizers") == nullptr) {
      faults.add(fit->position(),
                 "[trainer.fit] needs an optimizer, such as [trainer.init.optimizer.AdamW]");
    }
  }
  if (const ConfigValue* validate = trainer.find("validate")) {
    run.validate = sections.validate(section("validate"), validate->position());
  }
  if (trainer.find("validate_all") != nullptr) {
    run.validate_all = sections.validate_all(section("validate_all"));
  }
  if (const ConfigValue* predict = trainer.find("predict")) {
    run.predict = sections.predict(section("predict"), predict->position());
  }
}

/// The file with every default.
std::string resolved_text(const ConfigTable& file,
                          const TrainerOptions& init,
                          const SectionReader& sections,
                          const Registries& registries) {
  ConfigTable resolved;
  if (const ConfigValue* plugins = file.find("plugins")) {
    resolved.set("plugins", *plugins);
  }
  ConfigTable trainer;
  trainer.set("init", ConfigValue(trainer_keys(registries).write(&init)));
  for (const ConfigEntry& section : sections.resolved().entries()) {
    trainer.set(section.key, section.value);
  }
  resolved.set("trainer", ConfigValue(std::move(trainer)));
  return write_toml(resolved);
}

/// One phase: the table at `trainer`.
RunConfig read_phase(const ConfigTable& file,
                     const ConfigValue& trainer,
                     const Registries& registries,
                     FaultSink faults,
                     const std::vector<Fault>& found) {
  ConfigValue expanded = trainer;
  if (auto* const words = expanded.get_if<ConfigTable>()) {
    pymarlin::expand_table(*words, faults);
  }
  check_tables(expanded, faults);
  const auto* tables = expanded.get_if<ConfigTable>();
  RunConfig run;
  SectionReader sections(registries, faults);
  if (tables != nullptr) {
    run.init = read_init(*tables, registries, faults);
    read_sections(*tables, sections, run, faults);
  }
  if (found.empty()) {
    run.init.config_text = resolved_text(file, run.init, sections, registries);
  }
  return run;
}

/// Either every phase is watched for restarts in vain, or none.
void check_autorestart(const std::vector<RunConfig>& phases,
                       const ConfigValue& trainer,
                       FaultSink& top) {
  const auto watched = [](const RunConfig& run) {
    return run.init.autorestart.max_num_restarts.has_value();
  };
  const auto count = std::count_if(phases.begin(), phases.end(), watched);
  if (count != 0 && count != static_cast<int64_t>(phases.size())) {
    top.add(trainer.position(),
            fmt::format("{} of {} phases have [trainer.init.autorestart]: give it to all or none",
                        count,
                        phases.size()));
  }
}

}  // namespace

TrainerOptions config_defaults(const Registries& registries) {
  ConfigTable trainer;
  trainer.set("init", ConfigValue(ConfigTable()));
  std::vector<Fault> missing;  // what a file has to give
  FaultSink sink("trainer", missing);
  return read_init(trainer, registries, sink);
}

TrainerOptions read_options(ConfigTable init, const Registries& registries) {
  ConfigTable trainer;
  trainer.set("init", ConfigValue(std::move(init)));
  std::vector<Fault> faults;
  FaultSink sink("", faults);
  TrainerOptions options = read_init(trainer, registries, sink);
  const auto is_model = [](const Fault& fault) {
    return fault.message.find("missing key \"model\"") != std::string::npos;
  };
  faults.erase(std::remove_if(faults.begin(), faults.end(), is_model), faults.end());
  if (!faults.empty()) {
    throw ConfigError(std::move(faults));
  }
  return options;
}

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

std::vector<RunConfig> read_phases(const ConfigValue& root, const Registries& registries) {
  std::vector<Fault> found;
  FaultSink top("", found);
  const auto* table = root.get_if<ConfigTable>();
  const ConfigTable& file = table != nullptr ? *table : kNoKeys;
  refuse_unknown(file, {"trainer", "plugins"}, top);
  std::vector<RunConfig> phases;
  const ConfigValue* trainer = file.find("trainer");
  const auto* array = trainer != nullptr ? trainer->get_if<ConfigArray>() : nullptr;
  if (trainer == nullptr || (array != nullptr && array->empty())) {
    top.add(root.position(),
            "missing table [trainer]: a run is described by [trainer.init] and what to do with it");
  } else if (array == nullptr) {
    phases.push_back(read_phase(file, *trainer, registries, top.inside("trainer"), found));
  } else {
    for (size_t i = 0; i < array->size(); ++i) {
      FaultSink inside = top.inside(fmt::format("trainer[{}]", i));
      phases.push_back(read_phase(file, (*array)[i], registries, inside, found));
    }
    check_autorestart(phases, *trainer, top);
  }
  if (!found.empty()) {
    throw ConfigError(std::move(found));
  }
  return phases;
}

RunConfig read_run_config(const ConfigValue& root, const Registries& registries) {
  std::vector<RunConfig> phases = read_phases(root, registries);
  if (phases.size() != 1) {
    Fault fault;
    fault.position = root.position();
    fault.path = "trainer";
    fault.message = fmt::format("expected one phase, got {}", phases.size());
    throw ConfigError(std::move(fault));
  }
  return std::move(phases.front());
}

CheckpointIndex index_of(const RunConfig& run) {
  const CheckpointOptions& options = run.init.checkpoint;
  return CheckpointIndex(real_file_system(),
                         run.init.model_dir,
                         CheckpointName(options.checkpoint_name),
                         options.checkpoint_root);
}

Paths checkpoints_to_validate(const RunConfig& run) {
  const std::optional<std::vector<std::string>>& globs = run.validate_all->checkpoints;
  const CheckpointName name(run.init.checkpoint.checkpoint_name);
  return globs ? matching_checkpoints(*globs, name) : index_of(run).listed();
}

}  // namespace rondo
