// `rondo debug RUN_DIR --nan`: runs a run again whose numbers went bad, from its newest checkpoint
// that is sound, and tells which operator was first.

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <optional>

#include "backends/checks/tensor_summary.h"
#include "checkpoint/checkpoint_file.h"
#include "checkpoint/checkpoint_index.h"
#include "cli/commands.h"
#include "cli/load_run.h"
#include "cli/signals.h"
#include "core/error.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

bool has_nan(const StateValue& value) {
  if (value.is_tensor()) {
    return summary_of("", value.as_tensor()).nans > 0;
  }
  if (value.is_dict()) {
    for (const StateDict::Item& item : value.as_dict().items()) {
      if (has_nan(item.second)) {
        return true;
      }
    }
  }
  return false;
}

/// The newest checkpoint without a NaN in its model and optimizer; nothing when there is none.
std::optional<fs::path> newest_sound(const RunConfig& run) {
  const CheckpointOptions& options = run.init.checkpoint;
  const CheckpointIndex index(real_file_system(),
                              run.init.model_dir,
                              CheckpointName(options.checkpoint_name),
                              options.checkpoint_root);
  const std::vector<fs::path> all = index.all();
  for (auto path = all.rbegin(); path != all.rend(); ++path) {
    const StateDict state = read_checkpoint(*path);
    const StateValue* const model = state.find("model");
    const StateValue* const optimizer = state.find("optimizer");
    if ((model == nullptr || !has_nan(*model)) && (optimizer == nullptr || !has_nan(*optimizer))) {
      return *path;
    }
    std::cerr << fmt::format("{} holds NaN already\n", path->string());
  }
  return std::nullopt;
}

/// The file that the run in a directory was made of, resolved.
fs::path config_of(const fs::path& run) {
  for (const fs::path& candidate :
       {run / "trainer_params.toml", run / "logs" / "latest" / "trainer_params.toml"}) {
    if (fs::is_regular_file(candidate)) {
      return candidate;
    }
  }
  throw IoError(fmt::format("{} holds no run that began with a file: expected "
                            "logs/latest/trainer_params.toml in it",
                            run.string()),
                0);
}

/// The run as it was, but that it saves nothing, logs nothing, and explains.
RunConfig run_to_debug(const CommandLine& line, Registries& registries) {
  CommandLine read = line;
  read.config = config_of(line.target).string();
  std::vector<RunConfig> phases = load_run(read, registries);
  if (phases.size() != 1 || !phases.front().fit) {
    throw UsageError(line.target + ": a run with one [trainer.fit] can be debugged");
  }
  RunConfig run = std::move(phases.front());
  run.init.model_dir = line.target;
  if (const auto sound = newest_sound(run)) {
    run.fit->from = LoadFrom(*sound);
    std::cerr << fmt::format("from {}\n", sound->string());
  } else {
    run.fit->from = LoadFrom();
    std::cerr << "from the beginning\n";
  }
  run.init.model_dir = fs::path(line.target) / "debug";
  fs::remove_all(run.init.model_dir);
  run.init.checkpoint.steps = 0;
  run.init.checkpoint.checkpoint_root.clear();
  run.init.loggers.clear();
  run.init.backend.mode = "traced";
  run.init.backend.on_nan = "explain";
  return run;
}

}  // namespace

int run_debug(const CommandLine& line, Registries& registries) {
  const RunConfig run = run_to_debug(line, registries);
  // What it fails of is what is asked for.
  Trainer trainer(run.init, TextLog::to([](LogLevel, std::string_view) {}));
  const StopOnSignal signals(trainer);
  try {
    trainer.fit(run.fit->train, run.fit->val, run.fit->from);
  } catch (const NonFiniteLossError& error) {
    std::cout << error.what() << std::endl;
    return 0;
  }
  if (signals.exit_code() == 0) {
    std::cout << fmt::format("neither a loss nor the state went bad up to update {}\n",
                             trainer.state().global_step());
  }
  return signals.exit_code() != 0 ? signals.exit_code() : 1;
}

}  // namespace rondo
