#include "trainer/rehearsal.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "callbacks/reproducibility_callback.h"
#include "core/error.h"
#include "loops/fit_run.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

class ScratchDirectory {
 public:
  ScratchDirectory()
      : path_(fs::temp_directory_path() / fmt::format("rondo_rehearsal_{}", ::getpid())) {}

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
  return options;
}

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
  const ScratchDirectory scratch;
  set_length(run.init.loop, updates + 1);  // the last update of a run is saved: it is not reached
  const TrainerOptions options = without_traces(std::move(run.init), scratch.path());
  begin_measuring_memory();
  const int64_t before = own_size("VmRSS");
  Trainer trainer(options, TextLog(LogLevel::Warning));
  const std::unique_ptr<FitRun> fit = trainer.start_fit(run.fit->train, {}, LoadFrom::nothing());
  const RngScope random(trainer);
  while (trainer.state().global_step() < updates && fit->advance()) {
  }
  return {trainer.state().backend->reports(), own_size("VmHWM") - before};
}

}  // namespace rondo
