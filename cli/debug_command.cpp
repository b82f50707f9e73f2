// `rondo debug RUN_DIR --nan`: runs a run again whose numbers went bad, from its newest checkpoint
// that is sound, and tells which operator was first.

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <optional>

#include "checkpoint/checkpoint_file.h"
#include "cli/commands.h"
#include "cli/load_run.h"
#include "cli/signals.h"
#include "core/error.h"
#include "tracing/checks/tensor_summary.h"
#include "trainer/auto_options.h"
#include "trainer/run_aside.h"
#include "trainer/thread_calibration.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

/// What a state's tensors hold at worst.
enum class Holds { Numbers, Infinity, Nan };

Holds worst_of(const StateValue& value) {
  if (value.is_tensor()) {
    const TensorSummary summary = summary_of("", value.as_tensor());
    return summary.nans > 0 ? Holds::Nan : summary.infs > 0 ? Holds::Infinity : Holds::Numbers;
  }
  Holds worst = Holds::Numbers;
  if (value.is_dict()) {
    for (const StateDict::Item& item : value.as_dict().items()) {
      worst = std::max(worst, worst_of(item.second));
    }
  }
  return worst;
}

/// What the checkpoints of a run tell.
struct Saved {
  std::optional<fs::path> sound;  ///< where to begin
  int64_t update = 0;             ///< its
  std::optional<uint64_t> seed;   ///< the run's
};

/// Of the model and the optimizer.
Holds worst_in(const StateDict& checkpoint) {
  Holds worst = Holds::Numbers;
  for (const char* part : {"model", "optimizer", "optimizers"}) {
    if (const StateValue* const saved = checkpoint.find(part)) {
      worst = std::max(worst, worst_of(*saved));
    }
  }
  return worst;
}

/// Reads the run's checkpoints, the newest first, until one holds numbers only, and tells what is
/// wrong with the others. Infinity may be meant, as in a mask: when all have some, the newest of
/// those without a NaN it is.
Saved read_saved(const RunConfig& run) {
  const std::vector<fs::path> all = index_of(run).all();
  Saved saved;
  Holds held = Holds::Nan;
  for (auto path = all.rbegin(); path != all.rend() && held != Holds::Numbers; ++path) {
    try {
      const StateDict state = read_checkpoint(*path);
      if (const StateValue* const seed = state.find("rng/seed"); seed != nullptr && !saved.seed) {
        saved.seed = static_cast<uint64_t>(seed->as_int());
      }
      const Holds holds = worst_in(state);
      if (holds != Holds::Numbers) {
        std::cerr << fmt::format(
            "{} holds {} already\n", path->string(), holds == Holds::Nan ? "NaN" : "infinity");
      }
      if (holds < held) {
        const StateValue* const update = state.find("global_step");
        saved.sound = *path;
        saved.update = update == nullptr ? 0 : update->as_int();
        held = holds;
      }
    } catch (const CheckpointError&) {
      std::cerr << fmt::format("{}; trying the previous checkpoint\n",
                               describe(std::current_exception()));
    }
  }
  return saved;
}

/// The run as it was, but aside, and it explains.
struct Debugged {
  RunConfig run;
  int64_t update = 0;  ///< where it begins
};

Debugged run_to_debug(const CommandLine& line, Registries& registries) {
  CommandLine read = line;
  read.config = config_of_run(line.target).string();
  std::vector<RunConfig> phases = load_run(read, registries);
  if (phases.size() != 1 || !phases.front().fit) {
    throw UsageError(line.target + ": a run with one [trainer.fit] can be debugged");
  }
  RunConfig run = std::move(phases.front());
  run.init.model_dir = line.target;
  resolve_auto(run, registries);
  const Saved saved = read_saved(run);
  if (saved.sound) {
    run.fit->from = LoadFrom(*saved.sound);
    std::cerr << fmt::format("from {}\n", saved.sound->string());
  } else {
    // Another run's checkpoint is where this one began; one of its own is not sound.
    if (run.fit->from.path() && index_of(run).lists(*run.fit->from.path())) {
      run.fit->from = LoadFrom();
    }
    if (run.init.backend.threads == 0) {  // a checkpoint would tell
      run.init.backend.threads = threads_of_run(run.init.model_dir).value_or(0);
    }
    std::cerr << "from the beginning\n";
  }
  run.init.seed = run.init.seed ? run.init.seed : saved.seed;
  if (!run.init.seed) {
    std::cerr << "warning: neither trainer_params.toml nor a checkpoint has the seed of this run: "
                 "rondo draws another one, with which the run may not fail. The run's log names "
                 "the seed that it drew: add trainer.init.seed=N\n";
  }
  const fs::path aside = fs::path(line.target) / "debug";
  fs::remove_all(aside);
  run.init = options_aside(run.init, aside);
  run.init.backend.mode = "traced";
  run.init.backend.on_nan = "explain";
  return {std::move(run), saved.update};
}

}  // namespace

int run_debug(const CommandLine& line, Registries& registries) {
  const auto [run, first] = run_to_debug(line, registries);
  // What it fails of is what is asked for.
  Trainer trainer(run.init, TextLog::to([](LogLevel, std::string_view) {}));
  const StopOnSignal signals(trainer);
  try {
    trainer.fit(run.fit->train, run.fit->val, run.fit->from);
  } catch (const NonFiniteLossError& error) {
    std::cout << error.what() << std::endl;
    return 0;
  }
  const int64_t last = trainer.state().global_step();
  if (signals.exit_code() == 0 && last == first) {
    std::cout << fmt::format("the run ends at update {}: there is nothing to run again\n", last);
  } else if (signals.exit_code() == 0) {
    std::cout << fmt::format(
        "neither a loss nor the state became NaN or infinite from update {} to {}\n", first, last);
  }
  return signals.exit_code() != 0 ? signals.exit_code() : 1;
}

}  // namespace rondo
