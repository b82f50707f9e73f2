// `rondo debug --gradients RUN.toml`: compares the gradients of a run's first batch with finite
// differences, in float64.

#include <filesystem>
#include <fstream>
#include <iostream>

#include "cli/commands.h"
#include "cli/load_run.h"
#include "core/error.h"
#include "trainer/auto_options.h"
#include "trainer/run_aside.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

Factory<Callback> check_of(const Registries& registries) {
  std::vector<Fault> faults;
  FaultSink sink(registries.callbacks.family(), faults);
  return registries.callbacks.read_named("CheckGradients", {}, ConfigTable(), sink);
}

}  // namespace

int run_gradients(const CommandLine& line, Registries& registries) {
  CommandLine read = line;
  read.config = line.target;
  std::vector<RunConfig> phases = load_run(read, registries);
  if (phases.size() != 1 || !phases.front().fit) {
    throw UsageError(line.target + ": a run with one [trainer.fit] can be debugged");
  }
  RunConfig& run = phases.front();
  resolve_auto(run, registries);
  const ScratchDirectory aside;
  TrainerOptions options = options_aside(run.init, aside.path());
  options.backend.mode = "eager";
  options.precision = {};
  options.precision.dtype = "fp64";
  options.loop.max_steps = 1;
  options.loop.num_steps.reset();
  options.loop.num_epochs.reset();
  options.loop.max_duration.reset();
  options.callbacks.push_back(check_of(registries));
  Trainer trainer(options, TextLog(LogLevel::Error));
  const auto print = [&] {
    std::cout << std::ifstream(trainer.state().artifact_dir / "gradients.txt").rdbuf()
              << std::flush;
  };
  try {
    trainer.fit(run.fit->train, {}, LoadFrom::nothing());
  } catch (...) {
    print();
    throw;
  }
  print();
  return 0;
}

}  // namespace rondo
