#include <fmt/format.h>

#include <filesystem>
#include <iostream>

#include "backends/timeline.h"
#include "checkpoint/checkpoint_file.h"
#include "cli/commands.h"
#include "cli/load_run.h"
#include "core/error.h"
#include "core/file_system.h"
#include "trainer/rehearsal.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

void print_entries(const StateDict& state, int indent) {
  for (const StateDict::Item& item : state.items()) {
    if (item.second.is_dict()) {
      std::cout << fmt::format("{:{}}{}/\n", "", indent, item.first);
      print_entries(item.second.as_dict(), indent + 2);
    } else {
      std::cout << fmt::format("{:{}}{}: {}\n", "", indent, item.first, item.second.kind());
    }
  }
}

/// `steps/` of a run directory, of its newest logs, or of an artifact directory itself.
fs::path steps_directory(const fs::path& target) {
  for (const fs::path& candidate : {target / "steps", target / "logs" / "latest" / "steps"}) {
    if (fs::is_directory(candidate)) {
      return candidate;
    }
  }
  throw IoError(
      fmt::format(
          "{} holds no recorded steps: expected steps/ or logs/latest/steps/ in it (an eager "
          "run records none)",
          target.string()),
      0);
}

/// Trains the run of an artifact directory for a few updates and writes a trace of each step there.
void print_timelines(const CommandLine& line, const fs::path& steps, Registries& registries) {
  constexpr int64_t kBeforeTimed = 10;  // captures, verification, trials of kernels
  CommandLine run_line;
  run_line.config = (steps.parent_path() / "trainer_params.toml").string();
  RunConfig run = load_run(run_line, registries).front();
  run.init.backend.timed_replays = line.replays;
  for (const StepReport& step : rehearse(std::move(run), kBeforeTimed + line.replays).steps) {
    const fs::path trace = steps / (step.name + ".trace.json");
    write_atomically(*real_file_system(), trace, chrome_trace(step.name, step.timeline));
    std::cout << fmt::format(
        "step {}, trace in {}\n{}", step.name, trace.string(), timeline_table(step.timeline));
  }
}

}  // namespace

int run_inspect(const CommandLine& line, Registries& registries) {
  const fs::path target = line.target;
  if (fs::is_regular_file(target)) {
    print_entries(read_checkpoint(target), 0);
    return 0;
  }
  const fs::path steps = steps_directory(target);
  if (line.timeline) {
    print_timelines(line, steps, registries);
    return 0;
  }
  if (!line.graph.empty()) {
    std::cout << real_file_system()->read(steps / (line.graph + ".txt"));
    return 0;
  }
  for (const std::string& name : real_file_system()->list(steps)) {
    if (fs::path(name).extension() == ".json") {
      std::cout << fs::path(name).stem().string() << ": " << real_file_system()->read(steps / name);
    }
  }
  return 0;
}

}  // namespace rondo
