#include "trainer/rehearsal.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <utility>

#include "callbacks/reproducibility_callback.h"
#include "core/error.h"
#include "core/stopwatch.h"
#include "loops/fit_run.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

class ScratchDirectory {
 public:
  ScratchDirectory()
      : path_(fs::temp_directory_path() /
              fmt::format("rondo_rehearsal_{}_{}", ::getpid(), static_cast<const void*>(this))) {}

  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  ~ScratchDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// A size in /proc/self/status, in bytes; 0 when the system does not tell.
int64_t own_size(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name + ':', 0) == 0) {
      return std::stoll(line.substr(name.size() + 1)) * 1024;
    }
  }
  return 0;
}

/// Forgets what was resident at most, and what was freed but not given back.
void begin_measuring_memory() {
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
}

TrainerOptions without_traces(TrainerOptions options, const fs::path& directory) {
  options.model_dir = directory;
  options.checkpoint = {};
  options.checkpoint.autoload_last_checkpoint = false;
  options.loggers.clear();
  options.logging.log_level = "error";
  options.autorestart = {};
  options.loop.eval_frequency = 0;
  set_length(options.loop, int64_t{1} << 40);  // its end, where it would be saved, is never reached
  return options;
}

bool all_are_replayed(const std::vector<StepReport>& steps) {
  return std::all_of(
      steps.begin(), steps.end(), [](const StepReport& step) { return step.stats.replays > 0; });
}

/// A fit in a scratch directory.
class ScratchFit {
 public:
  ScratchFit(TrainerOptions options, const DataLoader& train)
      : trainer_(without_traces(std::move(options), scratch_.path()), TextLog(LogLevel::Warning)),
        random_(trainer_),
        fit_(trainer_.start_fit(train, {}, LoadFrom::nothing())) {}

  /// Goes on to the next update.
  void update() {
    const int64_t before = trainer_.state().global_step();
    while (trainer_.state().global_step() == before && fit_->advance()) {
    }
  }

  std::vector<StepReport> reports() const { return trainer_.state().backend->reports(); }

 private:
  ScratchDirectory scratch_;
  Trainer trainer_;
  RngScope random_;
  std::unique_ptr<FitRun> fit_;
};

}  // namespace

void set_length(LoopOptions& loop, int64_t updates) {
  loop.max_steps = updates;
  loop.num_steps.reset();
  loop.num_epochs.reset();
  loop.max_duration.reset();
}

Rehearsal rehearse(RunConfig run, int64_t updates) {
  if (!run.fit) {
    throw UsageError("the run has no [trainer.fit]: there is no training step to look at");
  }
  if (run.init.backend.mode != "traced") {
    throw UsageError("backend.mode is \"" + run.init.backend.mode +
                     "\": only traced steps are planned; set backend.mode = \"traced\"");
  }
  run.fit->train.source();  // the data set is there before what is measured
  begin_measuring_memory();
  const int64_t before = own_size("VmRSS");
  ScratchFit fit(std::move(run.init), run.fit->train);
  for (int64_t i = 0; i < updates; ++i) {
    fit.update();
  }
  std::vector<StepReport> steps = fit.reports();
  // Steps of short groups and batches come once in a pass.
  for (int64_t i = 0; i < 3 * updates && !all_are_replayed(steps); ++i) {
    fit.update();
    steps = fit.reports();
  }
  return {std::move(steps), own_size("VmHWM") - before};
}

double seconds_of_update(TrainerOptions options, const DataLoader& train) {
  constexpr int kBeforeTimed = 8;  // captures, verification, trials of kernels
  constexpr size_t kFewest = 5;
  constexpr double kBudget = 1.0;  // seconds
  ScratchFit fit(std::move(options), train);
  for (int i = 0; i < kBeforeTimed; ++i) {
    fit.update();
  }
  std::vector<double> seconds;
  const Stopwatch all;
  while (seconds.size() < kFewest || all.seconds() < kBudget) {
    const Stopwatch one;
    fit.update();
    seconds.push_back(one.seconds());
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

}  // namespace rondo
