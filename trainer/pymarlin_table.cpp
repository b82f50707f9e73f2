#include "trainer/pymarlin_table.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "core/options.h"
#include "trainer/pymarlin_arguments.h"

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
           "directory of the model alone; in a run file a callback writes it")
      .key("load_dir", &Arguments::load_dir, "directory of the checkpoint to begin with")
      .key("load_filename", &Arguments::load_filename, "its file")
      .key("file_prefix", &Arguments::file_prefix, "how names begin")
      .key("file_ext", &Arguments::file_ext, "how names end");
  return keys;
}

KeyTable<StatInitArguments> stat_keys() {
  using Arguments = StatInitArguments;
  KeyTable<Arguments> keys;
  keys.key(
      "log_steps", &Arguments::log_steps, at_least(1), "optimizer steps between two log steps");
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
      .key("backend", &Arguments::backend, one_of({"sp", "sp-amp"}), "how steps run")
      .table("checkpointer_args",
             &Arguments::checkpointer_args,
             checkpointer_keys(),
             "when and where the run is saved")
      .table("stats_args", &Arguments::stats_args, stat_keys(), "when stats are written");
  return keys;
}

/// Puts values into a phase, with the place that they come from.
class Expansion {
 public:
  Expansion(ConfigTable& trainer, const ConfigTable& given, SourcePosition at, FaultSink& faults)
      : trainer_(trainer), given_(given), at_(std::move(at)), faults_(faults) {}

  /// \param name  in PyMarlin's table, "stats_args.log_steps"
  /// \param path  of the key in a phase, such as {"init", "loop", "num_epochs"}
  template <class Value>
  void put(const std::string& name, const std::vector<std::string>& path, Value value) {
    put_value(name, path, ConfigValue::Variant(std::move(value)));
  }

  /// Into a table that is there.
  void put_into(const std::string& name,
                ConfigTable& table,
                const std::string& key,
                ConfigValue::Variant content) {
    const ConfigEntry* const by_user = entry_of(name);
    const SourcePosition place = by_user != nullptr ? by_user->key_position : at_;
    const ConfigValue value(std::move(content), place);
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

 private:
  void put_value(const std::string& name,
                 std::vector<std::string> path,
                 ConfigValue::Variant content) {
    const std::string key = path.back();
    path.pop_back();
    if (ConfigTable* const table = table_at(path)) {
      put_into(name, *table, key, std::move(content));
    }
  }

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

void put_lengths(Expansion& expansion, const TrainerArguments& arguments) {
  expansion.put("epochs", {"init", "loop", "num_epochs"}, arguments.epochs);
  expansion.put("epochs", {"init", "loop", "eval_frequency"}, std::string("1ep"));
  if (arguments.max_train_steps_per_epoch) {
    expansion.put("max_train_steps_per_epoch",
                  {"init", "loop", "train_subset_num_batches"},
                  *arguments.max_train_steps_per_epoch);
  }
  if (arguments.max_val_steps_per_epoch) {
    expansion.put("max_val_steps_per_epoch",
                  {"init", "loop", "eval_steps"},
                  *arguments.max_val_steps_per_epoch);
  }
}

/// A batch of the loader is what an optimizer step sees; it is cut where it is too large.
void put_batch_sizes(Expansion& expansion,
                     ConfigTable& trainer,
                     const TrainerArguments& arguments) {
  const int64_t step_size = train_step_batch_size(arguments);
  if (step_size != arguments.train_batch_size) {
    expansion.put(
        "gpu_batch_size_limit", {"init", "loop", "device_train_microbatch_size"}, step_size);
  }
  ConfigValue* const fit = trainer.find("fit");
  ConfigTable* const tables = fit != nullptr ? fit->get_if<ConfigTable>() : nullptr;
  if (tables == nullptr) {
    return;
  }
  if (ConfigValue* const train = tables->find("train_dataloader")) {
    if (auto* const table = train->get_if<ConfigTable>()) {
      expansion.put_into("train_batch_size", *table, "batch_size", arguments.train_batch_size);
    }
  }
  ConfigValue* const val = tables->find("val_dataloader");
  if (val == nullptr) {
    return;
  }
  if (auto* const table = val->get_if<ConfigTable>()) {
    expansion.put_into("val_batch_size", *table, "batch_size", arguments.val_batch_size);
  } else if (auto* const list = val->get_if<ConfigArray>()) {
    for (ConfigValue& one : *list) {
      if (auto* const inner = one.get_if<ConfigTable>()) {
        expansion.put_into("val_batch_size", *inner, "batch_size", arguments.val_batch_size);
      }
    }
  }
}

void put_precision(Expansion& expansion, const TrainerArguments& arguments) {
  if (arguments.clip_grads) {
    expansion.put(
        "max_grad_norm", {"init", "precision", "max_gradient_norm"}, arguments.max_grad_norm);
  }
  if (arguments.backend == "sp-amp") {
    constexpr double kFirstScale = 4096.0;  // PyMarlin's
    expansion.put("backend", {"init", "precision", "dtype"}, std::string("fp16"));
    expansion.put("backend", {"init", "precision", "initial_loss_scale"}, kFirstScale);
  }
  if (!arguments.use_gpu) {
    expansion.put("use_gpu", {"init", "backend", "device"}, std::string("cpu"));
  }
}

void put_saving(Expansion& expansion, const TrainerArguments& arguments) {
  const CheckpointerArguments& saving = arguments.checkpointer_args;
  const auto put = [&](const char* name, const char* key, auto value) {
    expansion.put(std::string("checkpointer_args.") + name, {"init", "checkpoint", key}, value);
  };
  if (saving.checkpoint) {
    put("period", "steps", fmt::format("{}ep", saving.period));
  } else {
    put("checkpoint", "steps", int64_t{0});
    put("checkpoint", "save_final_checkpoint", false);
  }
  if (expansion.is_given("checkpointer_args.save_dir")) {
    put("save_dir", "checkpoint_root", saving.save_dir.string());
  }
  put("file_prefix",
      "checkpoint_name",
      fmt::format("{}_{{step}}.{}", saving.file_prefix, saving.file_ext));
  if (!saving.load_filename.empty()) {
    expansion.put("checkpointer_args.load_filename",
                  {"init", "checkpoint", "load", "path"},
                  (saving.load_dir / saving.load_filename).string());
  }
}

void put_logging(Expansion& expansion, const TrainerArguments& arguments) {
  expansion.put(
      "stats_args.log_steps", {"init", "logging", "log_steps"}, arguments.stats_args.log_steps);
  std::string level = arguments.log_level;
  for (char& c : level) {
    c = static_cast<char>(c - 'A' + 'a');
  }
  expansion.put("log_level", {"init", "logging", "log_level"}, level);
  ConfigArray loggers;
  const auto add = [&loggers](const char* name, bool is_wanted) {
    ConfigTable logger;
    logger.set(name, ConfigValue(ConfigValue::Variant(is_wanted)));
    loggers.emplace_back(ConfigValue::Variant(std::move(logger)));
  };
  for (const std::string& writer : arguments.writers) {
    if (writer == "tensorboard") {
      add("TensorBoardLogger", true);
    }
  }
  if (arguments.disable_tqdm) {
    add("ProgressLogger", false);  // which a run file has by default
  }
  expansion.put("writers", {"init", "loggers"}, loggers);
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
  } catch (const UsageError& error) {
    inside.add(kept.key_position, error.what());
    return;
  }
  Expansion expansion(trainer, *given, kept.key_position, inside);
  put_lengths(expansion, arguments);
  put_batch_sizes(expansion, trainer, arguments);
  put_precision(expansion, arguments);
  put_saving(expansion, arguments);
  put_logging(expansion, arguments);
}

}  // namespace rondo::pymarlin
