// `rondo plan`: what a training step needs, before it is trained.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/load_run.h"
#include "core/bytes_named.h"
#include "core/error.h"
#include "core/json.h"
#include "trainer/auto_options.h"
#include "trainer/dry_run.h"
#include "trainer/run_memory.h"

namespace rondo {

namespace {

std::string megabytes(int64_t bytes) {
  return fmt::format("{:.2f} MiB", static_cast<double>(bytes) / (1 << 20));
}

void print_amounts(const char* title, const Amounts& amounts) {
  std::vector<std::pair<std::string, int64_t>> rows(amounts.begin(), amounts.end());
  std::stable_sort(
      rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::cout << title << '\n';
  for (const auto& [name, bytes] : rows) {
    std::cout << fmt::format("  {:>14}  {}\n", megabytes(bytes), name);
  }
}

Amounts grouped(const std::vector<InstructionBytes>& results, std::string InstructionBytes::*name) {
  Amounts groups;
  for (const InstructionBytes& one : results) {
    groups[one.*name] += one.bytes;
  }
  return groups;
}

void print(const RunConfig& run, const std::vector<StepReport>& steps, const RunMemory& all) {
  for (const StepReport& step : steps) {
    std::cout << fmt::format("step {}: {} operators, arena {}, of it {} that kernels keep\n",
                             step.name,
                             step.stats.operators_replayed,
                             megabytes(step.memory.arena),
                             megabytes(step.memory.of_kernels));
    print_amounts(" the arena at its fullest, by operator",
                  grouped(step.memory.fullest, &InstructionBytes::op));
    print_amounts(" the same, by module", grouped(step.memory.fullest, &InstructionBytes::module));
  }
  print_amounts("the model, by module", all.modules);
  Amounts whole = all.state;
  whole["one batch"] = all.inputs;
  whole["batches made ahead"] = all.ahead;
  if (all.validation > 0) {
    whole["batches of a validation"] = all.validation;
  }
  whole["constants"] = all.constants;
  whole["arenas"] = all.arenas;
  whole["results that operators allocate"] = all.adopted;
  if (all.history > 0) {
    whole["the state's copy for on_nan"] = all.history;
  }
  print_amounts("the run", whole);
  std::cout << fmt::format(
      "replays: {}; at most, when the first one is {}: {}, of it {} measured beyond the plans\n",
      megabytes(all.of_replays()),
      all.is_verified ? "verified" : "tried",
      megabytes(all.peak),
      megabytes(all.unplanned));
  std::cout << "not predicted: the data set, what libraries keep, validations of callbacks";
  if (saves_in_background(run)) {
    std::cout << ", the copy of the state while a save in the background writes it";
  }
  if (all.history > 0) {
    std::cout << fmt::format(", and up to {} of batches that on_nan = \"explain\" keeps",
                             megabytes(most_kept_batches(all)));
  }
  std::cout << '\n';
}

/// Bytes of the limit on the command line; 0: none. \throws UsageError
int64_t limit_of(const CommandLine& line) {
  const std::optional<int64_t> limit = bytes_named(line.memory_limit);
  if (!line.memory_limit.empty() && !limit) {
    throw UsageError(
        "--memory-limit: expected a size such as 512MB or 2GiB, less than 2^63 bytes, got \"" +
        line.memory_limit + '"');
  }
  return limit.value_or(0);
}

std::string json_of(const Amounts& amounts) {
  std::vector<std::string> members;
  members.reserve(amounts.size());
  for (const auto& [name, bytes] : amounts) {
    members.push_back(fmt::format("{}: {}", json_string(name), bytes));
  }
  return fmt::format("{{{}}}", fmt::join(members, ", "));
}

std::string json_of(const StepReport& step) {
  const std::vector<InstructionBytes>& fullest = step.memory.fullest;
  return fmt::format(
      "{{\"name\": {}, \"operators\": {}, \"arena\": {}, \"of_kernels\": {}, "
      "\"by_operator\": {}, \"by_module\": {}}}",
      json_string(step.name),
      step.stats.operators_replayed,
      step.memory.arena,
      step.memory.of_kernels,
      json_of(grouped(fullest, &InstructionBytes::op)),
      json_of(grouped(fullest, &InstructionBytes::module)));
}

/// What the process of the run takes, with program, libraries and data set.
/// \param first  the first dry run in this process: its growth takes in what libraries keep
int64_t process_of(const DryRun& first, const RunConfig& run) {
  return std::max(first.most_before, first.before + memory_of(first, run).peak);
}

/// Of the optimizers, in one of the ranks that share it; nothing without --ranks.
std::optional<int64_t> shared_state_of(const CommandLine& line, const DryRun& dry) {
  return line.ranks > 1
             ? std::optional(most_of_shared_state(dry.steps, static_cast<int>(line.ranks)))
             : std::nullopt;
}

/// One line: the same bytes as `print` tells.
std::string json_of(const DryRun& dry,
                    const RunMemory& all,
                    int64_t process,
                    const std::optional<int64_t>& shared_state) {
  Amounts whole = all.state;
  whole.insert({{"inputs", all.inputs},
                {"ahead", all.ahead},
                {"validation", all.validation},
                {"constants", all.constants},
                {"arenas", all.arenas},
                {"adopted", all.adopted},
                {"capture", all.capture},
                {"history", all.history},
                {"unplanned", all.unplanned},
                {"replays", all.of_replays()},
                {"peak", all.peak},
                {"process", process},
                {"measured", dry.grown_by}});
  if (shared_state) {
    whole["shared_optimizer_state"] = *shared_state;
  }
  std::vector<std::string> texts;
  texts.reserve(dry.steps.size());
  for (const StepReport& step : dry.steps) {
    texts.push_back(json_of(step));
  }
  return fmt::format("{{\"run\": {}, \"modules\": {}, \"steps\": [{}]}}",
                     json_of(whole),
                     json_of(all.modules),
                     fmt::join(texts, ", "));
}

}  // namespace

int run_plan(const CommandLine& line, Registries& registries) {
  const int64_t limit = limit_of(line);
  std::vector<RunConfig> phases = load_run(line, registries);
  if (phases.size() != 1) {
    throw UsageError(line.config + " has several phases; `rondo plan` takes a file of one");
  }
  RunConfig& run = phases.front();
  resolve_auto(run, registries);
  if (run.init.backend.executor != "plan") {
    std::cerr << fmt::format(
        "backend.executor = \"{}\" plans no memory: shown is what \"plan\" takes\n",
        std::exchange(run.init.backend.executor, "plan"));
  }
  const DryRun first = dry_run_of_all_steps(run);
  const DryRun dry = dry_run_of_all_steps(run);
  const RunMemory all = memory_of(dry, run);
  const int64_t process = process_of(first, run);
  const std::optional<int64_t> shared_state = shared_state_of(line, dry);
  if (line.json) {
    std::cout << json_of(dry, all, process, shared_state) << std::endl;
  } else {
    print(run, dry.steps, all);
    if (shared_state) {
      std::cout << fmt::format(
          "with {} ranks and distributed.shard_optimizer: optimizer state of at most {} in each\n",
          line.ranks,
          megabytes(*shared_state));
    }
  }
  std::cerr << fmt::format(
      "measured: this process grew by {} for the steps, and before by {} for libraries; neither "
      "is the data set\n",
      megabytes(dry.grown_by),
      megabytes(std::max<int64_t>(first.grown_by - dry.grown_by, 0)));
  if (limit == 0) {
    return 0;
  }
  const int64_t most = process + most_beside(all, run);
  std::cerr << fmt::format(
      "{}: {} at most for the whole process, with program, libraries, data set, the copy of a save "
      "and kept batches\n",
      most <= limit ? "fits" : "does not fit",
      megabytes(most));
  return most <= limit ? 0 : 1;
}

}  // namespace rondo
