#include "trainer/pymarlin_table.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/options.h"
#include "distributed/launch_environment.h"
#include "trainer/pymarlin_arguments.h"
#include "trainer/pymarlin_mapping.h"

namespace rondo::pymarlin {

namespace {

KeyTable<CheckpointerArguments> checkpointer_keys() {
  using Arguments = CheckpointerArguments;
  KeyTable<Arguments> keys;
  keys.key("checkpoint", &Arguments::checkpoint, "whether the run is saved")
      .key("period", &Arguments::period, at_least(1), "epochs between two saves")
      .key("save_dir", &Arguments::save_dir, "directory of checkpoints")
      .key("model_state_save_dir",
           &Arguments::model_state_save_dir,
           "of pymarlin::Trainer: directory of the model alone")
      .key("load_dir",
           &Arguments::load_dir,
           "directory of the checkpoint that a new run begins with")
      .key("load_filename",
           &Arguments::load_filename,
           "its file; absent: the one with the largest number")
      .key("file_prefix", &Arguments::file_prefix, "how names begin")
      .key("file_ext", &Arguments::file_ext, "how names end");
  return keys;
}

KeyTable<StatInitArguments> stat_keys() {
  using Arguments = StatInitArguments;
  KeyTable<Arguments> keys;
  keys.key("log_steps", &Arguments::log_steps, at_least(1), "optimizer steps between two log steps")
      .key("log_model_steps",
           &Arguments::log_model_steps,
           at_least(1),
           "of pymarlin::Trainer: optimizer steps between two records of norms")
      .key("exclude_list",
           &Arguments::exclude_list,
           "of pymarlin::Trainer: expression of parameters without norms");
  return keys;
}

KeyTable<WriterInitArguments> writer_keys() {
  using Arguments = WriterInitArguments;
  KeyTable<Arguments> keys;
  keys.key("tb_log_dir",
           &Arguments::tb_log_dir,
           "directory of TensorBoard's events; \"logs\": \"events\" in model_dir");
  return keys;
}

KeyTable<TrainerArguments> keys_of_table() {
  using Arguments = TrainerArguments;
  KeyTable<Arguments> keys;
  keys.key("epochs", &Arguments::epochs, at_least(1), "epochs of the run")
      .key("use_gpu", &Arguments::use_gpu, "whether a GPU is used where there is one")
      .key("train_batch_size", &Arguments::train_batch_size, at_least(1), "samples of a step")
      .key("gpu_batch_size_limit",
           &Arguments::gpu_batch_size_limit,
           at_least(1),
           "samples of a micro-batch at most")
      .key("val_batch_size",
           &Arguments::val_batch_size,
           at_least(1),
           "samples of a validation's batch")
      .key("max_train_steps_per_epoch", &Arguments::max_train_steps_per_epoch, "optimizer steps")
      .key("max_val_steps_per_epoch", &Arguments::max_val_steps_per_epoch, "batches of each loader")
      .key("clip_grads", &Arguments::clip_grads, "whether gradients are clipped")
      .key("max_grad_norm", &Arguments::max_grad_norm, greater_than(0), "to this joint norm")
      .key("writers", &Arguments::writers, "stdout, tensorboard; aml is passed over")
      .key("disable_tqdm", &Arguments::disable_tqdm, "no progress line")
      .key("log_level",
           &Arguments::log_level,
           one_of({"DEBUG", "INFO", "WARNING", "ERROR"}),
           "least severe messages")
      .key("backend", &Arguments::backend, "sp, sp-amp, ddp or ddp-amp: how steps run")
      .table("checkpointer_args",
             &Arguments::checkpointer_args,
             checkpointer_keys(),
             "when and where the run is saved")
      .table("stats_args", &Arguments::stats_args, stat_keys(), "when stats are written")
      .table("writer_args", &Arguments::writer_args, writer_keys(), "where stats are written");
  return keys;
}

/// Puts values into a phase, with the place that they come from.
class Expansion {
 public:
  Expansion(ConfigTable& trainer, const ConfigTable& given, SourcePosition at, FaultSink& faults)
      : trainer_(trainer), given_(given), at_(std::move(at)), faults_(faults) {}

  /// \param name  in PyMarlin's table, "stats_args.log_steps"
  /// \param path  of the key in a phase, such as {"init", "loop", "num_epochs"}
  void put(const std::string& name, std::vector<std::string> path, const ConfigValue& value) {
    const std::string key = path.back();
    path.pop_back();
    if (ConfigTable* const table = table_at(path)) {
      put_into(name, *table, key, value);
    }
  }

  /// Into a table that is there.
  void put_into(const std::string& name,
                ConfigTable& table,
                const std::string& key,
                ConfigValue value) {
    const ConfigEntry* const by_user = entry_of(name);
    const SourcePosition place = by_user != nullptr ? by_user->key_position : at_;
    value.set_position(place);
    const ConfigEntry* const other = table.find_entry(key);
    if (other == nullptr) {
      table.set(key, value, place);
    } else if (by_user != nullptr && other->value.to_text() != value.to_text()) {
      faults_.add(place,
                  fmt::format("{} asks for {} = {}, and {} for {}; give one of them",
                              name,
                              key,
                              value.to_text(),
                              to_string(other->key_position),
                              other->value.to_text()));
    }
  }

  /// Of a phase, made where it is missing; null when something else is there.
  ConfigTable* table_at(const std::vector<std::string>& path) {
    ConfigTable* table = &trainer_;
    for (const std::string& part : path) {
      if (table->find(part) == nullptr) {
        table->set(part, ConfigValue(ConfigTable{}, at_), at_);
      }
      table = table->find(part)->get_if<ConfigTable>();
      if (table == nullptr) {
        return nullptr;  // reported when the phase is read
      }
    }
    return table;
  }

  bool is_given(const std::string& name) const { return entry_of(name) != nullptr; }

  /// Of a key that is given.
  std::optional<SourcePosition> place_of(const std::string& name) const {
    const ConfigEntry* const entry = entry_of(name);
    return entry != nullptr ? std::optional(entry->key_position) : std::nullopt;
  }

 private:
  const ConfigEntry* entry_of(const std::string& name) const {
    const size_t dot = name.find('.');
    if (dot == std::string::npos) {
      return given_.find_entry(name);
    }
    const ConfigValue* const outer = given_.find(name.substr(0, dot));
    const auto* const inner = outer != nullptr ? outer->get_if<ConfigTable>() : nullptr;
    return inner != nullptr ? inner->find_entry(name.substr(dot + 1)) : nullptr;
  }

  ConfigTable& trainer_;
  const ConfigTable& given_;
  SourcePosition at_;
  FaultSink& faults_;
};

/// The pass of a loader whose batch is what an optimizer step sees.
void put_length_of_pass(Expansion& expansion, const TrainerArguments& arguments) {
  if (arguments.max_train_steps_per_epoch) {
    expansion.put("max_train_steps_per_epoch",
                  {"init", "loop", "train_subset_num_batches"},
                  ConfigValue(*arguments.max_train_steps_per_epoch));
  }
}

/// A batch of the loader is what an optimizer step sees; it is cut where it is too large.
void put_batch_sizes(Expansion& expansion,
                     ConfigTable& trainer,
                     const TrainerArguments& arguments) {
  const int64_t step_size = train_step_batch_size(arguments);
  if (step_size != arguments.train_batch_size) {
    expansion.put("gpu_batch_size_limit",
                  {"init", "loop", "device_train_microbatch_size"},
                  ConfigValue(step_size));
  }
  ConfigValue* const fit = trainer.find("fit");
  ConfigTable* const tables = fit != nullptr ? fit->get_if<ConfigTable>() : nullptr;
  if (tables == nullptr) {
    return;
  }
  if (ConfigValue* const train = tables->find("train_dataloader")) {
    if (auto* const table = train->get_if<ConfigTable>()) {
      expansion.put_into(
          "train_batch_size", *table, "batch_size", ConfigValue(arguments.train_batch_size));
    }
  }
  ConfigValue* const val = tables->find("val_dataloader");
  if (val == nullptr) {
    return;
  }
  if (auto* const table = val->get_if<ConfigTable>()) {
    expansion.put_into(
        "val_batch_size", *table, "batch_size", ConfigValue(arguments.val_batch_size));
  } else if (auto* const list = val->get_if<ConfigArray>()) {
    for (ConfigValue& one : *list) {
      if (auto* const inner = one.get_if<ConfigTable>()) {
        expansion.put_into(
            "val_batch_size", *inner, "batch_size", ConfigValue(arguments.val_batch_size));
      }
    }
  }
}

/// The shorthand `device` of `[trainer.init]` replaces a default, as the key itself does.
bool is_replaced(const MappedKey& key, ConfigTable* init) {
  const bool is_device = key.path == std::vector<std::string>{"backend", "device"};
  return is_device && init != nullptr && init->find("device") != nullptr;
}

void put_mapped(Expansion& expansion, const TrainerArguments& arguments) {
  for (const MappedKey& key : mapped_keys(arguments)) {
    const bool is_given = expansion.is_given(key.argument);
    const bool yields = key.is_optional || is_replaced(key, expansion.table_at({"init"}));
    if (is_given || !yields) {
      std::vector<std::string> path{"init"};
      path.insert(path.end(), key.path.begin(), key.path.end());
      expansion.put(key.argument, std::move(path), key.value);
    }
  }
}

/// What only a program's own Trainer does.
void refuse_what_programs_do(const Expansion& expansion, FaultSink& faults) {
  if (const auto place = expansion.place_of("checkpointer_args.model_state_save_dir")) {
    faults.add(
        *place,
        "checkpointer_args.model_state_save_dir is for pymarlin::Trainer; a run file writes "
        "the model alone with callbacks = [{ SaveCheckpointState = {} }], or at its end with "
        "ExportForInference = { format = \"safetensors\", file = \"model.safetensors\" }");
  }
  for (const char* name : {"stats_args.log_model_steps", "stats_args.exclude_list"}) {
    if (const auto place = expansion.place_of(name)) {
      faults.add(*place,
                 fmt::format("{} is for pymarlin::Trainer; a run file logs norms with callbacks = "
                             "[{{ ComputeNorm = true }}] or OptimizerMonitor, on log steps",
                             name));
    }
  }
}

/// PyMarlin's "sp" is a single process.
void require_one_process(const std::string& backend) {
  const auto launched = read_launch_environment();
  if (backend.rfind("sp", 0) == 0 && launched && launched->world_size > 1) {
    throw UsageError(
        fmt::format("backend: \"{}\" is for one process, and this is one of {}; take \"ddp{}\"",
                    backend,
                    launched->world_size,
                    backend.substr(2)));
  }
}

}  // namespace

void expand_table(ConfigTable& trainer, FaultSink& faults) {
  const ConfigEntry* const entry = trainer.find_entry("pymarlin");
  if (entry == nullptr) {
    return;
  }
  const ConfigEntry kept = *entry;
  trainer.erase("pymarlin");
  FaultSink inside = faults.inside("pymarlin");
  const auto* const given = kept.value.get_if<ConfigTable>();
  if (given == nullptr) {
    inside.add(kept.key_position, "expected a table of PyMarlin's TrainerArguments");
    return;
  }
  TrainerArguments arguments;
  keys_of_table().read(*given, kept.value.position(), &arguments, inside);
  try {
    check(arguments);
    require_one_process(arguments.backend);
  } catch (const UsageError& error) {
    inside.add(kept.key_position, error.what());
    return;
  }
  Expansion expansion(trainer, *given, kept.key_position, inside);
  refuse_what_programs_do(expansion, inside);
  put_mapped(expansion, arguments);
  put_length_of_pass(expansion, arguments);
  put_batch_sizes(expansion, trainer, arguments);
}

}  // namespace rondo::pymarlin
