#include "trainer/sparsity_keys.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/registry.h"
#include "sparsity/algorithm.h"
#include "sparsity/sparsity_options.h"
#include "trainer/registries.h"
#include "trainer/trainer_options.h"

namespace rondo {

namespace {

/// A share, or a table of how it changes.
class ScheduleOption {
 public:
  static std::string name() {
    return "a number >= 0 and < 1, or a table with from, to, form and power";
  }

  static std::optional<SparsitySchedule> read(const ConfigValue& value, FaultSink& faults) {
    if (const auto* table = value.get_if<ConfigTable>()) {
      SparsitySchedule schedule;
      keys().read(*table, value.position(), &schedule, faults);
      return schedule;
    }
    if (!below_one().accepts(value)) {
      return detail::mismatch(value, name(), faults);
    }
    const std::optional<double> share = OptionType<double>::read(value, faults);
    return share ? std::optional<SparsitySchedule>(*share) : std::nullopt;
  }

  static ConfigValue write(const SparsitySchedule& schedule) {
    return schedule.form == "constant" && schedule.from == schedule.to
               ? ConfigValue(schedule.to)
               : ConfigValue(keys().write(&schedule));
  }

 private:
  static KeyTable<SparsitySchedule> keys() {
    KeyTable<SparsitySchedule> keys;
    keys.key("from", &SparsitySchedule::from, below_one(), "share of zeros until update.start")
        .key("to", &SparsitySchedule::to, below_one(), "share of zeros from update.stop on")
        .required()
        .key("form",
             &SparsitySchedule::form,
             one_of({"constant", "linear", "cosine", "polynomial"}),
             "course between the two")
        .key("power", &SparsitySchedule::power, greater_than(0), "exponent of a polynomial course");
    return keys;
  }
};

/// "RigL", or `{ RigL = { drop_fraction = 0.3 } }`; none: Static.
class AlgorithmOption {
 public:
  explicit AlgorithmOption(const Registry<SparsityAlgorithm>& registry)
      : registry_(&registry), component_(registry) {}

  std::string name() const { return "a sparsity algorithm, or " + component_.name(); }

  std::optional<Factory<SparsityAlgorithm>> read(const ConfigValue& value,
                                                 FaultSink& faults) const {
    const std::string* word = value.get_if<std::string>();
    if (word == nullptr) {
      return component_.read(value, faults);
    }
    auto factory = registry_->read_named(*word, value.position(), {}, faults);
    return factory ? std::optional<Factory<SparsityAlgorithm>>(std::move(factory)) : std::nullopt;
  }

  ConfigValue write(const Factory<SparsityAlgorithm>& factory) const {
    return component_.write(factory);
  }

 private:
  const Registry<SparsityAlgorithm>* registry_;
  ComponentOption<SparsityAlgorithm> component_;
};

KeyTable<MaskUpdateOptions> update_keys() {
  KeyTable<MaskUpdateOptions> keys;
  keys.key("every", &MaskUpdateOptions::every, greater_than(0), "how far apart changes are")
      .key("start", &MaskUpdateOptions::start, at_least(0), "where the schedule begins")
      .key("stop",
           &MaskUpdateOptions::stop,
           greater_than(0),
           "where the schedule ends, with a last change of the masks");
  return keys;
}

KeyTable<SparsityOptions> sparsity_keys(const Registries& registries) {
  KeyTable<SparsityOptions> keys;
  keys.key_of("sparsity",
              &SparsityOptions::sparsity,
              ScheduleOption{},
              "share of the masked parameters that is kept at zero; 0: none")
      .key("params",
           &SparsityOptions::params,
           "globs of the masked parameters; none: all with two dimensions or more")
      .key_of("algorithm",
              &SparsityOptions::algorithm,
              AlgorithmOption(registries.sparsity_algorithms),
              "how the masks change; absent: Static, never")
      .key("init",
           &SparsityOptions::init,
           one_of({"topk", "random", "from_zeros"}),
           "the first masks: the largest weights, any, or those that are not zero")
      .key("distribution",
           &SparsityOptions::distribution,
           one_of({"balanced", "global"}),
           "whether each parameter has that share of zeros, or all of them together")
      .table("update", &SparsityOptions::update, update_keys(), "when the masks change");
  return keys;
}

/// `schedule` is another name of `sparsity`.
ConfigTable without_alias(const ConfigTable& table, FaultSink& faults) {
  const ConfigEntry* alias = table.find_entry("schedule");
  ConfigTable own = table;
  if (alias == nullptr) {
    return own;
  }
  if (table.find("sparsity") != nullptr) {
    faults.add(alias->key_position,
               "\"schedule\" is another name of \"sparsity\": give one of them");
  } else {
    own.set("sparsity", alias->value, alias->key_position);
  }
  own.erase("schedule");
  return own;
}

void read_table(const KeyList& keys,
                const ConfigValue& value,
                SparsityOptions& options,
                FaultSink& faults) {
  if (const auto* table = value.get_if<ConfigTable>()) {
    keys.read(without_alias(*table, faults), value.position(), &options, faults);
  } else {
    detail::add_mismatch(value, "a table", "", faults);
  }
}

void read_sparsity(const KeyList& keys,
                   const ConfigValue& value,
                   SparsityOptions& options,
                   FaultSink& faults) {
  if (value.get_if<double>() != nullptr || value.get_if<int64_t>() != nullptr) {
    if (const auto share = ScheduleOption::read(value, faults)) {
      options.sparsity = *share;
    }
    return;
  }
  const auto* list = value.get_if<ConfigArray>();
  if (list == nullptr) {
    return read_table(keys, value, options, faults);
  }
  for (size_t i = 0; i < list->size(); ++i) {
    FaultSink inside = faults.inside("[" + std::to_string(i) + "]");
    read_table(keys, (*list)[i], options.groups.emplace_back(), inside);
  }
}

ConfigValue write_sparsity(const KeyList& keys, const SparsityOptions& options) {
  if (options.groups.empty()) {
    return ConfigValue(keys.write(&options));
  }
  ConfigArray groups;
  for (const SparsityOptions& group : options.groups) {
    groups.push_back(ConfigValue(keys.write(&group)));
  }
  return ConfigValue(std::move(groups));
}

}  // namespace

OptionKey sparsity_key(const Registries& registries) {
  const auto keys = std::make_shared<const KeyTable<SparsityOptions>>(sparsity_keys(registries));
  OptionKey key;
  key.name = "sparsity";
  key.type = "a share, a table, or a list of tables";
  key.doc = "weights kept at zero";
  key.nested = keys->keys();
  key.read = [keys](const ConfigValue& value, void* options, FaultSink& faults) {
    read_sparsity(*keys, value, static_cast<TrainerOptions*>(options)->sparsity, faults);
  };
  key.write = [keys](const void* options) {
    return write_sparsity(*keys, static_cast<const TrainerOptions*>(options)->sparsity);
  };
  return key;
}

}  // namespace rondo
