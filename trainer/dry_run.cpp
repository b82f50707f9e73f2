#include "trainer/dry_run.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <utility>

#include "callbacks/core/early_exit_callback.h"
#include "callbacks/core/reproducibility_callback.h"
#include "callbacks/core/run_plan.h"
#include "callbacks/core/run_schedule_callback.h"
#include "callbacks/core/validation_callback.h"
#include "callbacks/not_in_dry_runs.h"
#include "core/error.h"
#include "core/process_memory.h"
#include "core/stopwatch.h"
#include "loops/fit_run.h"
#include "trainer/run_aside.h"
#include "trainer/short_passes.h"
#include "trainer/thread_calibration.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

/// Forgets what was resident at most, and what was freed but not given back.
void begin_measuring_memory() {
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
}

/// Ends nothing, and gives schedules the length that the run has.
class EndlessPlan final : public RunPlan {
 public:
  using RunPlan::RunPlan;

  bool is_over(const Timestamp&) const override { return false; }
};

class EndlessRunSchedule final : public RunScheduleCallback {
 public:
  struct Options {
    std::optional<int64_t> updates_per_epoch = {};  ///< of the run
  };

  explicit EndlessRunSchedule(const Options& options) : o_(options) {}

 protected:
  std::unique_ptr<RunPlan> make_plan(const LoopOptions& options,
                                     const Timestamp& start,
                                     std::optional<int64_t>) const override {
    return std::make_unique<EndlessPlan>(options, start, o_.updates_per_epoch);
  }

 private:
  Options o_;
};

/// Ends nothing.
class NoEarlyExit final : public EarlyExitCallback {
 public:
  bool should_exit() override { return false; }
};

bool is_left_out(const Callback& callback) {
  return dynamic_cast<const NotInDryRuns*>(&callback) != nullptr;
}

/// Where the run validates, a callback with validations of its own is left out as well.
bool is_not_validated_with(const Callback& callback) {
  return is_left_out(callback) || dynamic_cast<const ValidationCallback*>(&callback) != nullptr;
}

// Both captures of a step, a third where the first one made state, and two replays.
constexpr int64_t kToSettle = 5;

TrainerOptions for_dry_run(TrainerOptions options,
                           const fs::path& directory,
                           std::optional<int64_t> updates_per_epoch,
                           bool validates) {
  if (options.backend.threads == 0) {
    options.backend.threads = threads_of_run(options.model_dir).value_or(1);
  }
  options = options_aside(std::move(options), directory);
  leave_out(options, validates ? is_not_validated_with : is_left_out);
  options.slots.emplace(EarlyExitCallback::kSlot, use<NoEarlyExit>());
  // Its end, where it would be saved, is never reached.
  if (!options.slots
           .emplace(RunScheduleCallback::kSlot, use<EndlessRunSchedule>({updates_per_epoch}))
           .second) {
    set_length(options.loop, int64_t{1} << 40);  // one of a user's own goes on by no other way
  }
  options.loop.eval_frequency = validates ? kToSettle : 0;
  return options;
}

bool all_are_replayed(const Backend& backend) {
  const std::vector<StepReport> steps = backend.reports();
  return std::all_of(steps.begin(), steps.end(), [](const StepReport& step) {
    return step.stats.replays > 0 || is_eager(step);
  });
}

bool has_validated(const Backend& backend) {
  const std::vector<StepReport> steps = backend.reports();
  return !std::all_of(steps.begin(), steps.end(), is_of_training);
}

/// \return whether the run validates
bool shorten_validations(RunConfig& run) {
  LoopOptions& loop = run.init.loop;
  Loaders& val = run.fit->val;
  if (loop.eval_frequency.is_zero()) {
    val.clear();
  }
  val = with_short_validations(val, loop);
  // A share of a pass whose end is not known is refused by the fit.
  if (!loop.eval_steps || loop.eval_steps->unit() != TimeUnit::Fraction ||
      std::all_of(val.begin(), val.end(), [](const DataLoader& one) { return one.size(); })) {
    loop.eval_steps = kShortValidation;
  }
  return std::any_of(val.begin(), val.end(), [](const DataLoader& one) { return one.size() != 0; });
}

/// A fit in a scratch directory.
class ScratchFit {
 public:
  /// \param of_run  the loader of the run; `train` may have shorter passes
  ScratchFit(const TrainerOptions& options,
             const DataLoader& train,
             const Loaders& val,
             const LoadFrom& from,
             const DataLoader& of_run)
      : trainer_(for_dry_run(
                     options, scratch_.path(), updates_of_pass(of_run, options.loop), !val.empty()),
                 TextLog(LogLevel::Warning)),
        random_(trainer_),
        fit_(trainer_.start_fit(train, val, from)) {}

  /// Goes on to the next update. \return false when it was given up
  /// \throws Error  when the fit has ended
  bool update(const std::function<bool()>& gives_up = {}) {
    const int64_t before = trainer_.state().global_step();
    while (trainer_.state().global_step() == before) {
      if (gives_up && gives_up()) {
        return false;
      }
      trainer_.clear_stop();  // whoever asked for it means the run
      if (!fit_->advance()) {
        throw Error(
            fmt::format("the dry run ended too early, after update {}: remove the callback that "
                        "replaces slot run_schedule or early_exit",
                        before));
      }
    }
    return true;
  }

  const Backend& backend() const { return *trainer_.state().backend; }

 private:
  ScratchDirectory scratch_;
  Trainer trainer_;
  RngScope random_;
  std::unique_ptr<FitRun> fit_;
};

void require_planned(const RunConfig& run) {
  if (!run.fit) {
    throw UsageError("the run has no [trainer.fit]: there is no training step to look at");
  }
  if (run.init.backend.mode != "traced") {
    throw UsageError("backend.mode is \"" + run.init.backend.mode +
                     "\": only traced steps are planned; set backend.mode = \"traced\"");
  }
  if (run.init.backend.executor != "plan") {
    throw UsageError("backend.executor is \"" + run.init.backend.executor +
                     "\": it has no plan to look at; set backend.executor = \"plan\"");
  }
}

/// Trains `updates` updates, and up to five times as many more until `is_enough`.
/// \param of_run  the loader of the run; that of `run` may have shorter passes
DryRun train_for(const RunConfig& run,
                 const DataLoader& of_run,
                 int64_t updates,
                 const std::function<bool(const Backend&)>& is_enough) {
  // The data sets are there before what is measured.
  run.fit->train.source();
  for (const DataLoader& loader : run.fit->val) {
    loader.source();
  }
  const int64_t most_before = peak_resident_bytes().value_or(0);
  begin_measuring_memory();
  const int64_t before = resident_bytes().value_or(0);
  ScratchFit fit(run.init, run.fit->train, run.fit->val, LoadFrom::nothing(), of_run);
  int64_t done = 0;
  try {
    for (; done < updates || (done < 6 * updates && !is_enough(fit.backend())); ++done) {
      fit.update();
    }
  } catch (const NonFiniteLossError&) {
    const Backend& backend = fit.backend();
    if (backend.reports().empty() || !(is_enough(backend) || backend.is_settled())) {
      throw;
    }
  }
  std::vector<StepReport> steps = fit.backend().reports();
  const auto first_eager = std::stable_partition(
      steps.begin(), steps.end(), [](const StepReport& step) { return !is_eager(step); });
  const std::vector<StepReport> eager(first_eager, steps.end());
  steps.erase(first_eager, steps.end());
  DryRun dry{std::move(steps),
             most_before,
             before,
             peak_resident_bytes().value_or(0) - before,
             run.fit->train,
             run.fit->val};
  if (std::none_of(dry.steps.begin(), dry.steps.end(), is_of_training)) {
    const auto why = std::find_if(eager.begin(), eager.end(), is_of_training);
    if (why != eager.end()) {
      throw NotSupportedError("no step was planned: " + why->reason +
                              ", so that it runs as it is written");
    }
    throw NotSupportedError(fmt::format(
        "no step was planned in {} updates: batches of one shape are needed, such as drop_last = "
        "true gives",
        done));
  }
  return dry;
}

}  // namespace

void set_length(LoopOptions& loop, int64_t updates) {
  // The limit is scaled again.
  loop.max_steps =
      static_cast<int64_t>(std::ceil(static_cast<double>(updates) / loop.scale_schedule_ratio));
  loop.num_steps.reset();
  loop.num_epochs.reset();
  loop.max_duration.reset();
}

DryRun dry_run(RunConfig run, int64_t updates) {
  require_planned(run);
  run.fit->val.clear();
  return train_for(run, run.fit->train, updates, all_are_replayed);
}

DryRun dry_run_of_all_steps(RunConfig run) {
  require_planned(run);
  const DataLoader of_run = run.fit->train;
  run.fit->train = with_short_passes(of_run, run.init.loop);
  const bool validates = shorten_validations(run);
  const auto is_settled = [validates](const Backend& backend) {
    return backend.is_settled() && (!validates || has_validated(backend));
  };
  return train_for(run, of_run, kToSettle, is_settled);
}

UpdateTime time_updates(const TimedFit& timed) {
  constexpr int kBeforeTimed = 8;  // captures, verification, trials of kernels
  constexpr size_t kFewest = 3;
  constexpr double kBudget = 0.25;  // seconds
  std::vector<double> seconds;
  UpdateTime result;
  try {
    TrainerOptions options = timed.options;
    options.backend.environment = "new";  // a checkpoint knows one number of threads
    ScratchFit fit(options, timed.train, {}, timed.from, timed.train);
    bool goes_on = true;
    for (int i = 0; i < kBeforeTimed && goes_on; ++i) {
      goes_on = fit.update(timed.gives_up);
    }
    const Stopwatch all;
    while (goes_on && (seconds.size() < kFewest || all.seconds() < kBudget)) {
      const Stopwatch one;
      goes_on = fit.update(timed.gives_up);
      if (goes_on) {
        seconds.push_back(one.seconds());
      }
    }
    result.trouble = goes_on ? "" : "it was given up";
  } catch (...) {  // the run itself may never come there
    result.trouble = describe(std::current_exception());
  }
  if (!seconds.empty()) {
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    result.median_s = *middle;
  }
  return result;
}

}  // namespace rondo
