#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "cli/commands.h"
#include "cli/load_run.h"
#include "cli/print_entries.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/glob.h"
#include "tracing/timeline.h"
#include "trainer/auto_options.h"
#include "trainer/dry_run.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

bool holds_training(const fs::path& steps) {
  const std::vector<std::string> names = real_file_system()->list(steps);
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.rfind("train", 0) == 0;
  });
}

/// `steps/` of an artifact directory, or of the newest logs of a run directory that have recorded
/// steps; those of a training come before those of a validation.
fs::path steps_directory(const fs::path& target) {
  std::vector<fs::path> candidates = {target / "steps"};
  if (fs::is_directory(target / "logs")) {
    std::vector<std::string> stamps = real_file_system()->list(target / "logs");
    std::sort(stamps.rbegin(), stamps.rend());
    for (const std::string& stamp : stamps) {
      if (!fs::is_symlink(target / "logs" / stamp)) {
        candidates.push_back(target / "logs" / stamp / "steps");
      }
    }
  }
  const auto is_missing = [](const fs::path& path) { return !fs::is_directory(path); };
  candidates.erase(std::remove_if(candidates.begin(), candidates.end(), is_missing),
                   candidates.end());
  if (candidates.empty()) {
    throw IoError(
        fmt::format("{} holds no recorded steps: expected steps/ or logs/<stamp>/steps/ in it (an "
                    "eager run records none)",
                    target.string()),
        0);
  }
  const auto training = std::find_if(candidates.begin(), candidates.end(), holds_training);
  return training != candidates.end() ? *training : candidates.front();
}

/// The steps that were recorded, by name.
std::vector<std::string> names_of_steps(const fs::path& steps) {
  std::vector<std::string> names;
  for (const std::string& file : real_file_system()->list(steps)) {
    if (fs::path(file).extension() == ".json" && file.find(".trace.") == std::string::npos) {
      names.push_back(fs::path(file).stem().string());
    }
  }
  return names;
}

void print_graph(const fs::path& steps, const std::string& name) {
  const std::vector<std::string> known = names_of_steps(steps);
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    throw UsageError(
        fmt::format("there is no recorded step \"{}\"{}", name, suggestion(name, known)));
  }
  std::cout << real_file_system()->read(steps / (name + ".txt"));
}

/// Trains the run of an artifact directory for a few updates and writes a trace of each step there.
void print_timelines(const CommandLine& line, const fs::path& steps, Registries& registries) {
  constexpr int64_t kCaptures = 5;  // at most, with those of a step that settles late
  CommandLine run_line;
  run_line.config = (steps.parent_path() / "trainer_params.toml").string();
  RunConfig run = load_run(run_line, registries).front();
  resolve_auto(run, registries);
  run.init.backend.timed_replays = line.replays;
  // <model_dir>/logs/<stamp>/steps: the run may have been moved.
  run.init.model_dir =
      fs::absolute(steps).lexically_normal().parent_path().parent_path().parent_path();
  for (const StepReport& step :
       dry_run(run, kCaptures + TimingSchedule::of(line.replays).replays()).steps) {
    const fs::path trace = steps / (step.name + ".trace.json");
    write_atomically(*real_file_system(), trace, chrome_trace(step.name, step.timeline));
    std::cout << fmt::format(
        "step {}, trace in {}\n{}", step.name, trace.string(), timeline_table(step.timeline));
  }
}

}  // namespace

int run_inspect(const CommandLine& line, Registries& registries) {
  const fs::path target = line.target;
  if (line.timeline && !line.graph.empty()) {
    throw UsageError("--timeline and --graph exclude each other; give one of them");
  }
  if (fs::is_regular_file(target)) {
    if (line.timeline || !line.graph.empty()) {
      throw UsageError(target.string() +
                       " is a file; --timeline and --graph take a run's directory");
    }
    print_entries(read_checkpoint(target));
    return 0;
  }
  const fs::path steps = steps_directory(target);
  if (line.timeline) {
    print_timelines(line, steps, registries);
    return 0;
  }
  if (!line.graph.empty()) {
    print_graph(steps, line.graph);
    return 0;
  }
  std::cout << "recorded in " << steps.string() << '\n';
  for (const std::string& name : names_of_steps(steps)) {
    std::cout << name << ": " << real_file_system()->read(steps / (name + ".json"));
  }
  return 0;
}

}  // namespace rondo
