// What holds for one call of fit, names of runs, and states in memory.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

FitOptions for_duration(Time duration) {
  FitOptions options;
  options.duration = duration;
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("trainer/fit_options");

TEST_CASE("C36: a fit of one batch after a run in epochs trains one batch") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.num_epochs = 2;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  CHECK(trainer.state().global_step() == 10);
  CHECK(trainer.fit(for_duration("1ba"), tiny_loader("train")).steps_now == 1);
  CHECK(trainer.state().global_step() == 11);
  CHECK(trainer.fit(for_duration("1ep"), tiny_loader("train")).steps_now == 4);  // the epoch's rest
}

TEST_CASE("a fit for so many updates continues with the same bits") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 8;
  Trainer whole(options, quiet_log());
  whole.fit(tiny_loader("train"));
  options.loop.max_steps = 3;
  options.model_dir = dir / "parts";
  Trainer parts(options, quiet_log());
  parts.fit(tiny_loader("train"));
  parts.fit(for_duration(5), tiny_loader("train"));
  CHECK(first_difference(bits_of(whole), bits_of(parts)) == "");
}

TEST_CASE("C35: with the time reset the same length is trained again") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 4;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  FitOptions again;
  again.reset_time = true;
  CHECK(trainer.fit(again, tiny_loader("train")).steps_now == 4);
  CHECK(trainer.state().global_step() == 4);
}

TEST_CASE("a cadence of validations holds for one fit") {
  const TempDir dir;
  int validations = 0;
  ProbeCallback::Options probe;
  probe.validate_start = [&](Trainer&) { ++validations; };
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 4;
  options.loop.eval_frequency = 4;
  options.callbacks = {use<ProbeCallback>(probe)};
  Trainer trainer(options, quiet_log());
  FitOptions often = for_duration(4);
  often.eval_frequency = 1;
  trainer.fit(often, tiny_loader("train"), {tiny_loader("val", 2)});
  CHECK(validations == 4);
}

TEST_CASE("a duration that is a share of the run or nothing is refused") {
  const TempDir dir;
  Trainer trainer(tiny_options(dir / "run"), quiet_log());
  CHECK_THROWS_AS(trainer.fit(for_duration(0.5), tiny_loader("train")), UsageError);
  CHECK_THROWS_AS(trainer.fit(for_duration(0), tiny_loader("train")), UsageError);
}

TEST_CASE("a run is named by its option, else RUN_NAME, else the last part of model_dir") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "third");
  CHECK(Trainer(options, quiet_log()).state().run_name == "third");
  ::setenv("RUN_NAME", "second", 1);
  CHECK(Trainer(options, quiet_log()).state().run_name == "second");
  options.run_name = "first";
  CHECK(Trainer(options, quiet_log()).state().run_name == "first");
  ::unsetenv("RUN_NAME");
}

TEST_CASE("C64: a resume under another name keeps its own, and warns of the checkpoint's") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.run_name = "before";
  options.loop.max_steps = 2;
  Trainer(options, quiet_log()).fit(tiny_loader("train"));
  options.run_name = "after";
  options.loop.max_steps = 3;
  std::vector<std::string> warnings;
  Trainer trainer(options, quiet_log(&warnings));
  trainer.fit(tiny_loader("train"));
  CHECK(trainer.state().run_name == "after");
  CHECK(std::any_of(warnings.begin(), warnings.end(), [](const std::string& warning) {
    return warning.find("\"before\"") != std::string::npos &&
           warning.find("\"after\"") != std::string::npos;
  }));
}

TEST_CASE("a state in memory gives back what the run was, but for what is excluded") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 4;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  const StateDict bits = bits_of(trainer);
  const StateDict kept = trainer.state_dict();
  trainer.fit(for_duration(3), tiny_loader("train"));
  const StateDict later = bits_of(trainer);
  CHECK(first_difference(bits, later) != "");
  const auto newest = trainer.state().last_checkpoint;
  trainer.load_state_dict(kept);
  CHECK(first_difference(bits, bits_of(trainer)) == "");
  CHECK(trainer.state().last_checkpoint == newest);
  trainer.fit(for_duration(3), tiny_loader("train"));
  CHECK(first_difference(later, bits_of(trainer)) == "");  // goes on exactly
  trainer.load_state_dict(kept, {"model"});
  CHECK(trainer.state().global_step() == 4);
  CHECK(first_difference(later.at("model").as_dict(), bits_of(trainer).at("model").as_dict()) ==
        "");
}

TEST_SUITE_END();
