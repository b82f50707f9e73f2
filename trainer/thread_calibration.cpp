#include "trainer/thread_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "backends/numeric_environment.h"
#include "configs/toml_file.h"
#include "core/available_cores.h"
#include "core/config_value.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/json.h"
#include "core/report_file.h"
#include "data/dataset.h"
#include "distributed/communicator.h"
#include "distributed/launch_environment.h"
#include "models/model_state.h"
#include "trainer/dry_run.h"
#include "trainer/fastest_threads.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kLabel = "{\"threads\": ";  // how a record begins

fs::path record_in(const fs::path& model_dir) {
  return model_dir / "threads.json";
}

/// The table at `key`, an empty one when there is none.
ConfigTable table_at(const ConfigTable& parent, const char* key) {
  const ConfigValue* const value = parent.find(key);
  const auto* const table = value != nullptr ? value->get_if<ConfigTable>() : nullptr;
  return table != nullptr ? *table : ConfigTable();
}

/// What of a run's config shapes a step.
std::string step_in_config(const TrainerOptions& options) {
  const ConfigValue root = parse_toml(options.config_text, "the config of the run");
  const ConfigTable trainer = table_at(*root.get_if<ConfigTable>(), "trainer");
  const ConfigTable init = table_at(trainer, "init");
  ConfigTable backend = table_at(init, "backend");
  backend.erase("environment");
  ConfigTable step;
  step.set("backend", ConfigValue(backend));
  for (const char* key : {"model",
                          "optimizer",
                          "optimizers",
                          "step",
                          "precision",
                          "sparsity",
                          "algorithms",
                          "callbacks",
                          "train_metrics",
                          "slots"}) {
    if (const ConfigValue* value = init.find(key)) {
      step.set(key, *value);
    }
  }
  const ConfigTable loop = table_at(init, "loop");
  for (const char* key :
       {"grad_accum_steps", "device_train_microbatch_size", "accumulate_on_tokens"}) {
    if (const ConfigValue* value = loop.find(key)) {
      step.set(key, *value);
    }
  }
  step.set("train_dataloader", ConfigValue(table_at(table_at(trainer, "fit"), "train_dataloader")));
  return ConfigValue(step).to_text();
}

/// Their names, dtypes and shapes.
std::string texts_of(const NamedTensors& tensors) {
  std::string texts;
  for (const auto& [name, tensor] : tensors) {
    texts += fmt::format(" {} {}[{}]{}",
                         name,
                         c10::toString(tensor.scalar_type()),
                         fmt::join(tensor.sizes(), ", "),
                         tensor.requires_grad() ? " trained" : "");
  }
  return texts;
}

/// A sample of the data set and how many make a batch.
std::string batch_of(const DataLoader& train) {
  std::string sample;
  try {
    const auto* const dataset = dynamic_cast<const Dataset*>(&train.source());
    sample = dataset != nullptr && dataset->size() > 0 ? texts_of(dataset->get(0).items()) : "";
  } catch (...) {  // whoever trains on it tells
  }
  return fmt::format("batch {} of{}", train.options().batch_size, sample);
}

/// The same of a run that was built in code: its parts have names, but options of any kind.
std::string step_in_code(const Trainer& trainer, const DataLoader& train) {
  const TrainerOptions& options = trainer.options();
  std::string optimizers = options.optimizer.name();
  for (const NamedOptimizer& one : options.optimizers) {
    optimizers += " " + one.optimizer.name();
  }
  return fmt::format("{}{} {} {} {} {} {} {} {} {}",
                     options.model.name(),
                     texts_of(named_parameters(trainer.state().model->module())),
                     optimizers,
                     options.step.name(),
                     options.backend.mode,
                     options.backend.executor,
                     options.backend.exact,
                     options.precision.dtype,
                     options.loop.grad_accum_steps,
                     batch_of(train));
}

/// As Linux names it; "" where it does not.
std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) {
      return line.substr(std::min(line.find(':') + 2, line.size()));
    }
  }
  return "";
}

/// Of this process, where the ranks of a host share its cores.
int cores_of_rank(const Trainer& trainer) {
  int ranks = 1;
  if (trainer.state().communicator->world_size() > 1) {
    const auto launched = read_launch_environment();
    ranks = launched ? launched->local_world_size : 1;
  }
  return std::max(available_cores() / ranks, 1);
}

/// What the choice depends on, in one line.
std::string circumstances(const Trainer& trainer, const DataLoader& train) {
  const TrainerOptions& options = trainer.options();
  const std::string step =
      options.config_text.empty() ? step_in_code(trainer, train) : step_in_config(options);
  const NumericEnvironment here = current_environment();
  return fmt::format("{} cores, {}, LibTorch {}, {}, {} {}, step {:016x}",
                     cores_of_rank(trainer),
                     processor(),
                     here.libtorch,
                     here.cpu_capability,
                     here.blas,
                     here.blas_core,
                     std::hash<std::string>()(step));
}

std::vector<int> candidates(int cores) {
  std::vector<int> numbers;
  for (int threads = 1; threads < cores; threads *= 2) {
    numbers.push_back(threads);
  }
  numbers.push_back(cores);
  return numbers;
}

void write_record(const Trainer& trainer,
                  int threads,
                  const std::string& circumstances,
                  const std::vector<ThreadTiming>& timings) {
  std::string times;
  for (const ThreadTiming& timing : timings) {
    if (timing.is_timed()) {
      times += fmt::format(
          "{}\"{}\": {:.1f}", times.empty() ? "" : ", ", timing.threads, timing.seconds * 1e6);
    }
  }
  const std::string text =
      fmt::format("{}{},\n \"circumstances\": {},\n \"us_per_update\": {{{}}}}}\n",
                  kLabel,
                  threads,
                  json_string(circumstances),
                  times);
  write_report(trainer.log(), record_in(trainer.options().model_dir), text);
}

/// The record of a run directory; "" when there is none.
std::string read_record(const fs::path& model_dir) {
  const fs::path file = record_in(model_dir);
  return fs::is_regular_file(file) ? real_file_system()->read(file) : "";
}

/// What the run has loaded, to load it once more.
LoadFrom beginning_of(const Trainer& trainer) {
  const auto& loaded = trainer.state().last_checkpoint;
  if (!loaded) {
    return LoadFrom::nothing();
  }
  // Of this one a part may have been taken; the options say which.
  return *loaded == trainer.options().checkpoint.load.path ? LoadFrom() : LoadFrom(*loaded);
}

}  // namespace

std::optional<int> recorded_threads(const Trainer& trainer, const DataLoader& train) {
  const fs::path& model_dir = trainer.options().model_dir;
  const std::optional<int> threads = threads_of_run(model_dir);
  if (!threads || *threads > cores_of_rank(trainer) ||
      read_record(model_dir).find(json_string(circumstances(trainer, train))) ==
          std::string::npos) {
    return std::nullopt;
  }
  return threads;
}

std::optional<int> threads_of_run(const fs::path& model_dir) {
  const std::string text = read_record(model_dir);
  if (text.rfind(kLabel, 0) != 0) {
    return std::nullopt;
  }
  const int threads = std::atoi(text.c_str() + kLabel.size());
  return threads >= 1 ? std::optional(threads) : std::nullopt;
}

void note_threads(const Trainer& trainer, int threads) {
  if (threads_of_run(trainer.options().model_dir) != threads) {
    write_record(trainer, threads, "not timed", {});
  }
}

std::optional<int> calibrate_threads(const Trainer& trainer, const DataLoader& train) {
  const auto is_stopped = [&trainer] { return trainer.stop_reason() != nullptr; };
  TimedFit fit{trainer.options(), train, beginning_of(trainer), is_stopped};
  const auto time = [&fit](int threads) {
    fit.options.backend.threads = threads;
    return time_updates(fit);
  };
  const ThreadTimings timings =
      time_in_turns(candidates(cores_of_rank(trainer)), {time, is_stopped});
  if (is_stopped()) {
    return std::nullopt;
  }
  const ThreadTiming best = timings.best();
  if (!best.is_timed()) {
    trainer.log().warning(fmt::format(
        "threads: no update could be timed, using 1; backend.threads = N sets another number ({})",
        timings.trouble));
    return 1;
  }
  write_record(trainer, best.threads, circumstances(trainer, train), timings.all);
  trainer.log().info(fmt::format("threads: {} ({:.0f} us an update, {:.0f} us with {})",
                                 best.threads,
                                 best.seconds * 1e6,
                                 timings.all.front().seconds * 1e6,
                                 timings.all.front().threads));
  return best.threads;
}

}  // namespace rondo
