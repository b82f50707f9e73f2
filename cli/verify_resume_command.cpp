// `rondo verify-resume`: does a run that is killed and resumed end in the bits of one that is not?

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <random>
#include <regex>
#include <utility>

#include "checkpoint/checkpoint_file.h"
#include "checkpoint/checkpoint_index.h"
#include "cli/commands.h"
#include "cli/load_run.h"
#include "cli/rank_processes.h"
#include "core/error.h"
#include "distributed/connect.h"
#include "trainer/auto_options.h"
#include "trainer/dry_run.h"
#include "trainer/thread_calibration.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

/// Texts without the time that a second save at one step has in its name.
StateValue without_stamps(const StateValue& value) {
  static const std::regex kStamp(R"(_\d{8}_\d{6}(?=\.))");
  if (value.is_dict()) {
    StateDict copy;
    for (const StateDict::Item& item : value.as_dict().items()) {
      copy.set(item.first, without_stamps(item.second));
    }
    return copy;
  }
  if (const auto* list = std::get_if<StateList>(&value.variant())) {
    StateList copy;
    for (const StateValue& element : *list) {
      copy.push_back(without_stamps(element));
    }
    return copy;
  }
  const auto* text = std::get_if<std::string>(&value.variant());
  return text != nullptr ? StateValue(std::regex_replace(*text, kStamp, "")) : value;
}

/// Takes the clocks out, which are called seconds.
void erase_clocks(StateDict& state) {
  auto& items = state.items();
  const auto is_clock = [](const StateDict::Item& item) {
    return std::regex_search(item.first, std::regex("(^|_)seconds$"));
  };
  items.erase(std::remove_if(items.begin(), items.end(), is_clock), items.end());
  for (StateDict::Item& item : items) {
    if (item.second.is_dict()) {
      erase_clocks(item.second.as_dict());
    }
  }
}

/// The names of all checkpoints that a run left, in its directory and below.
StateList names_left(const fs::path& model_dir, const fs::path& extension) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(model_dir)) {
    if (entry.path().extension() == extension && !entry.is_symlink()) {
      names.push_back(entry.path().lexically_relative(model_dir).string());
    }
  }
  std::sort(names.begin(), names.end());
  return {names.begin(), names.end()};
}

/// What two equal runs have in equal bytes: the newest checkpoint but for its clocks, and which
/// files are left beside it.
StateDict comparable(const fs::path& model_dir, const CheckpointName& name) {
  const CheckpointIndex index(real_file_system(), model_dir, name);
  const std::optional<fs::path> newest = index.newest();
  if (!newest) {
    throw CheckpointError(fmt::format("the run in {} saved nothing", model_dir.string()));
  }
  StateDict state = without_stamps(read_checkpoint(*newest)).as_dict();
  state.erase("__metadata__");
  state.erase("metrics");  // speeds are among them; their losses follow from the model
  for (const char* section : {"timestamp", "callbacks"}) {
    if (StateValue* found = state.find(section)) {
      erase_clocks(found->as_dict());
    }
  }
  state.set("files", names_left(model_dir, newest->extension()));
  return state;
}

/// The run that the command line asks for, with the length and the cadence of the check.
RunConfig checked_run(const CommandLine& line, Registries& registries) {
  std::vector<RunConfig> phases = load_run(line, registries);
  if (phases.size() != 1) {
    throw UsageError(line.config + " has several phases; verify-resume takes a file of one");
  }
  RunConfig run = std::move(phases.front());
  if (!run.fit) {
    throw UsageError(line.config + " has no [trainer.fit] to verify");
  }
  resolve_auto(run, registries);
  set_length(run.init.loop, line.steps);
  if (!run.init.seed) {  // every process would draw one of its own
    run.init.seed = static_cast<uint64_t>(line.seed);
  }
  CheckpointOptions& checkpoint = run.init.checkpoint;
  checkpoint.steps = line.every;
  checkpoint.save_final_checkpoint = true;
  checkpoint.autoload_last_checkpoint = true;
  checkpoint.checkpoint_root.clear();
  checkpoint.remote.clear();
  checkpoint.checkpoint_name =
      CheckpointOptions{}.checkpoint_name;  // names may have clocks in them
  // Each process goes on from the newest checkpoint, the first one from what the run is told.
  const LoadFrom start = std::exchange(run.fit->from, LoadFrom());
  if (start.path() || start.is_nothing()) {
    checkpoint.load = {};
    checkpoint.load.path = start.path().value_or(fs::path());
  }
  run.init.logging.log_level = "error";
  auto& loggers = run.init.loggers;
  loggers.erase(
      std::remove_if(loggers.begin(),
                     loggers.end(),
                     [](const auto& logger) { return logger.name() == "ProgressLogger"; }),
      loggers.end());
  run.init.model_dir = run.init.model_dir / "verify-resume" / "run";
  return run;
}

int fit_once(const RunConfig& run, const LaunchEnvironment& rank) {
  const TextLog log(LogLevel::Warning);
  TrainerOptions options = run.init;
  options.communicator =
      connect_ranks(rank, options.distributed.value_or(DistributedOptions{}), log);
  Trainer trainer(std::move(options), log);
  trainer.fit(run.fit->train, run.fit->val, run.fit->from);
  return 0;
}

void require_done(const ChildEnd& end) {
  if (!end.is_done()) {
    throw CheckpointError(
        end.signal != 0
            ? fmt::format("the run died of signal {}, which verify-resume did not send", end.signal)
            : fmt::format("the run failed with code {}, see above", end.code));
  }
}

RankProcesses start_ranks(const RunConfig& run, int64_t ranks) {
  return RankProcesses(ranks,
                       [&run](const LaunchEnvironment& rank) { return fit_once(run, rank); });
}

/// What a run that is killed again and again went through.
struct Campaign {
  int64_t kills = 0;
  int64_t runs = 0;  ///< that reached their end
};

/// Trains to the end in `run.init.model_dir`; of `kills_left` kills each comes at a random time of
/// a run that lives no longer than `life`, and hits one of its ranks.
int64_t train_under_fire(const RunConfig& run,
                         int64_t ranks,
                         Clock::duration life,
                         int64_t kills_left,
                         std::mt19937_64& random) {
  int64_t kills = 0;
  while (true) {
    RankProcesses processes = start_ranks(run, ranks);
    std::uniform_int_distribution<int64_t> moment(0, std::chrono::nanoseconds(life).count());
    if (kills < kills_left) {
      if (const auto end = processes.wait_for(std::chrono::nanoseconds(moment(random)))) {
        require_done(*end);
        return kills;
      }
      if (!processes.kill_one(random)) {
        require_done(processes.wait());
      }
      ++kills;
    } else {
      require_done(processes.wait());
      return kills;
    }
  }
}

}  // namespace

int run_verify_resume(const CommandLine& line, Registries& registries) {
  RunConfig run = checked_run(line, registries);
  const fs::path dir = run.init.model_dir;
  const CheckpointName name(run.init.checkpoint.checkpoint_name);
  fs::remove_all(dir);
  const auto start = Clock::now();
  require_done(start_ranks(run, line.ranks).wait());
  const Clock::duration life = Clock::now() - start;
  if (run.init.backend.threads == 0) {  // found anew, it might be another one
    run.init.backend.threads = threads_of_run(dir).value_or(1);
  }
  const StateDict straight = comparable(dir, name);
  std::mt19937_64 random(static_cast<uint64_t>(line.seed));
  Campaign done;
  while (done.kills < line.kills || done.runs == 0) {
    fs::remove_all(dir);
    done.kills += train_under_fire(run, line.ranks, life, line.kills - done.kills, random);
    ++done.runs;
    const std::string where = first_difference(straight, comparable(dir, name));
    if (!where.empty()) {
      std::cout << fmt::format(
          "DIFFERENT: after {} kills {} differs from the uninterrupted run; see {}\n",
          done.kills,
          where,
          dir.string());
      return 1;
    }
  }
  fs::remove_all(dir);
  std::cout << fmt::format(
      "equal, bit for bit: {} updates straight, and {} times with {} kills at random moments "
      "in all (seed {})\n",
      line.steps,
      done.runs,
      done.kills,
      line.seed);
  return 0;
}

}  // namespace rondo
