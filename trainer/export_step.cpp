#include "trainer/export_step.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "backends/generator_state.h"
#include "backends/numeric_environment.h"
#include "callbacks/core/backend_callback.h"
#include "callbacks/core/reproducibility_callback.h"
#include "callbacks/core/run_plan.h"
#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "core/version.h"
#include "loops/fit_run.h"
#include "loops/train_stage.h"
#include "tracing/checks/state_snapshot.h"
#include "tracing/passes/passes.h"
#include "tracing/traced_backend.h"
#include "trainer/exportable_program.h"
#include "trainer/run_aside.h"
#include "trainer/thread_calibration.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

namespace fs = std::filesystem;

/// A step settles in two captures, or three when the first one makes state.
constexpr int64_t kGroups = 4;

/// Longer tables are a mistake: 80 MB of numbers.
constexpr double kLongestSchedule = 1e7;

TrainerOptions options_to_export(const RunConfig& run, const fs::path& scratch) {
  TrainerOptions options = options_aside(run.init, scratch);
  options.loop.eval_frequency = 0;
  options.backend.mode = "traced";
  options.backend.executor = "plan";
  options.backend.on_nan = "stop";
  options.backend.on_refusal = "error";  // a file has no step as it is written
  if (options.backend.threads == 0 && !run.fit->from.path()) {
    options.backend.threads = threads_of_run(run.init.model_dir).value_or(0);
  }
  return options;
}

bool is_readable(const fs::path& checkpoint, const TextLog& log) {
  try {
    read_checkpoint(checkpoint);
    return true;
  } catch (const CheckpointError&) {
    log.warning(describe(std::current_exception()) + "; trying the previous checkpoint");
    return false;
  }
}

[[noreturn]] void throw_batches_differ(const StepProgram& first, const StepProgram& other) {
  throw NotSupportedError(
      fmt::format("the batches of a group differ: {}; an exported step takes batches of one shape: "
                  "choose a batch_size that divides the data, or set drop_last",
                  difference_of_inputs(first, other)));
}

/// The program of a position in groups of unequal batches, whose size is 0: losses have weights
/// there.
const StepProgram* unequal_program(const std::vector<RecordedStep>& recorded,
                                   const GroupPosition& position) {
  const auto found = std::find_if(recorded.begin(), recorded.end(), [&](const RecordedStep& step) {
    return step.key.step == "train" && step.key.position.size == 0 &&
           step.key.position.is_first == position.is_first &&
           step.key.position.is_last == position.is_last;
  });
  return found == recorded.end() ? nullptr : &found->program;
}

/// The program of a position for batches like those of `first`.
const StepProgram& program_of(const std::vector<RecordedStep>& recorded,
                              const GroupPosition& position,
                              const StepProgram* first) {
  const StepProgram* other = nullptr;
  for (const RecordedStep& step : recorded) {
    if (step.key.step != "train" || !(step.key.position == position)) {
      continue;
    }
    if (first == nullptr || difference_of_inputs(*first, step.program).empty()) {
      return step.program;
    }
    other = &step.program;
  }
  if (other != nullptr) {
    throw_batches_differ(*first, *other);
  }
  const StepProgram* const begin = unequal_program(recorded, {true, false, 0});
  const StepProgram* const end = unequal_program(recorded, {false, true, 0});
  if (begin != nullptr && end != nullptr) {
    throw_batches_differ(*begin, *end);
  }
  throw NotSupportedError(
      fmt::format("the step did not settle in {} updates: in a pass over the data there must be "
                  "whole groups of {} batches of one shape",
                  kGroups,
                  position.size));
}

/// The phases of a group of batches that differ, first to last.
std::vector<GroupPosition> positions_in_group(int64_t size) {
  if (size == 1) {
    return {{true, true, size}};
  }
  if (size == 2) {
    return {{true, false, size}, {false, true, size}};
  }
  return {{true, false, size}, {false, false, size}, {false, true, size}};
}

/// Which of a group's phases each of its batches is.
std::vector<int64_t> cycle_of_group(int64_t size) {
  std::vector<int64_t> cycle(static_cast<size_t>(size), 1);
  cycle.back() = static_cast<int64_t>(positions_in_group(size).size()) - 1;
  cycle.front() = 0;
  return cycle;
}

std::vector<StepProgram> programs_of_group(const std::vector<RecordedStep>& recorded,
                                           int64_t size) {
  std::vector<StepProgram> programs;
  for (const GroupPosition& position : positions_in_group(size)) {
    const StepProgram* const first = programs.empty() ? nullptr : &programs.front();
    programs.push_back(program_of(recorded, position, first));
  }
  return programs;
}

/// By which a scheduler multiplies its values: one number for all groups that it drives.
double scale_of(const Scheduler& scheduler, const Optimizer& optimizer) {
  std::optional<double> scale;
  for (size_t i = 0; i < optimizer.groups().size(); ++i) {
    if (!scheduler.drives(optimizer.groups()[i])) {
      continue;
    }
    if (scale && *scale != scheduler.scale_of(i)) {
      throw NotSupportedError(
          "a relative schedule of groups with different numbers cannot be exported: give each "
          "group "
          "its own schedule");
    }
    scale = scheduler.scale_of(i);
  }
  return scale.value_or(1.0);
}

ExportedSchedule table_of(const Scheduler& scheduler, const State& state) {
  const RunPlan& plan = *state.plan;
  if (scheduler.followed() != nullptr) {
    throw NotSupportedError(
        fmt::format("{} follows the metric {}, which a program without the trainer does not have",
                    class_name(typeid(scheduler)),
                    scheduler.followed()->name));
  }
  if (scheduler.unit() != TimeUnit::Update) {
    throw NotSupportedError(
        "a program without the trainer counts updates only: write the durations of schedules in "
        "updates, or as shares of a run whose length is loop.max_steps");
  }
  const std::optional<Time>& run = plan.length().total;
  const bool is_counted = run && run->unit() == TimeUnit::Update;
  const double length = std::min(scheduler.length(), is_counted ? run->value() : kEndless);
  if (length > kLongestSchedule) {
    throw NotSupportedError(
        "an endless schedule cannot be exported from a run whose length in updates is unknown: set "
        "loop.max_steps");
  }
  const double scale = scale_of(scheduler, state.optimizer_of(scheduler));
  ExportedSchedule table;
  for (int64_t updates = 0; updates <= static_cast<int64_t>(length); ++updates) {
    table.values.push_back(scheduler.at(static_cast<double>(updates)) * scale);
  }
  return table;
}

std::vector<ExportedSchedule> schedules_of(const StepProgram& program, const State& state) {
  std::vector<ExportedSchedule> tables;
  for (const std::string& name : program.host_calls) {
    if (name != "scheduler" || tables.size() == state.schedulers.size()) {
      throw NotSupportedError(
          fmt::format("the step makes the host call \"{}\", which a program without the trainer "
                      "cannot make; remove the callback that makes it",
                      name));
    }
    tables.push_back(table_of(*state.schedulers[tables.size()], state));
  }
  return tables;
}

/// State that was made while the step was recorded is written before it is read.
void clear_new_state(const StepFile& file, const CapturedState& before) {
  const at::NoGradGuard no_grad;
  for (const StepProgram& program : file.programs) {
    for (const Slot& slot : program.slots) {
      const bool is_new = slot.kind == SlotKind::Captured &&
                          std::none_of(before.begin(), before.end(), [&](const auto& known) {
                            return known.second.defined() && known.second.has_storage() &&
                                   known.second.is_alias_of(slot.value);
                          });
      if (is_new) {
        slot.value.detach().zero_();
      }
    }
  }
}

StateDict manifest_of(const RunConfig& run, const Trainer& trainer) {
  return {{"rondo", kVersion},
          {"environment", to_state(current_environment())},
          {"update", trainer.state().global_step()},
          {"checkpoint", trainer.state().last_checkpoint.value_or("").string()},
          {"config", run.init.config_text}};
}

}  // namespace

LoadFrom start_of(const RunConfig& run, const TextLog& log) {
  const LoadFrom from = run.fit        ? run.fit->from
                        : run.validate ? run.validate->from
                        : run.predict  ? run.predict->from
                                       : LoadFrom();
  if (from.path() || from.is_nothing() || !run.init.checkpoint.autoload_last_checkpoint) {
    return from;
  }
  const Paths own = index_of(run).resumable();
  const auto newest = std::find_if(own.rbegin(), own.rend(), [&](const fs::path& path) {
    return fs::exists(path) && is_readable(path, log);
  });
  if (newest != own.rend()) {
    return *newest;
  }
  return own.empty() ? from : LoadFrom(own.back());  // loading it says what is wrong
}

StepFile export_step(const RunConfig& run) {
  if (!run.fit) {
    throw UsageError("export-step needs a run with [trainer.fit]");
  }
  if (run.init.loop.device_train_microbatch_size) {
    throw NotSupportedError(
        "an exported step takes whole batches: remove loop.device_train_microbatch_size, and set "
        "the loader's batch_size to that of the step");
  }
  const ScratchDirectory scratch;
  Trainer trainer(options_to_export(run, scratch.path()), TextLog(LogLevel::Warning));
  const RngScope rng(trainer);
  const FitRun fit(trainer, run.fit->train, {}, start_of(run, trainer.log()));
  // One of its own: that of the fit ends with the run, which may be over already.
  TrainStage stage(trainer, run.fit->train, trainer.slot<Loop>(), 0);
  stage.begin();
  StepFile file;
  file.manifest = manifest_of(run, trainer);
  const CapturedState state = captured_state(trainer);
  StateSnapshot before(state, Batch());
  const int64_t group = run.init.loop.grad_accum_steps;
  for (int64_t i = 0; i < kGroups * group; ++i) {
    stage.advance();
  }
  const auto& backend = dynamic_cast<const TracedBackend&>(*trainer.state().backend);
  file.programs = programs_of_group(backend.recorded_steps(), group);
  file.cycle = cycle_of_group(group);
  for (StepProgram& program : file.programs) {
    program.closures.clear();
    program = remove_dead_code(std::move(program));
    refuse_odd_inputs(program);
    file.reads.push_back(reads_of(program));
    file.schedules.push_back(schedules_of(program, trainer.state()));
  }
  before.swap();
  clear_new_state(file, state);
  file.generator = generator_state();
  file.exact = run.init.backend.exact;
  file.without_passes = run.init.backend.without_passes;
  file.batches = file.manifest.at("update").as_int() * group;
  for (StepProgram& program : file.programs) {
    for (Slot& slot : program.slots) {
      slot.value = slot.value.defined() ? slot.value.detach() : slot.value;
    }
  }
  file.plans = plan_texts(file);
  return file;  // its tensors keep their memory
}

}  // namespace rondo
