#include "callbacks/core/schedulers_callback.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "loops/fit_run.h"
#include "optim/schedulers.h"
#include "optim/sgd.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// A run of 8 updates, 5 an epoch, that validates after each.
TrainerOptions options_of(const TempDir& dir, const Factory<Scheduler>& scheduler) {
  TrainerOptions options = tiny_options(dir / "run");
  options.schedulers = {scheduler};
  options.loop.max_steps = 8;
  options.loop.eval_frequency = 1;
  options.logging.log_steps = 1;
  return options;
}

double lr_of(Trainer& trainer) {
  return trainer.state().optimizer->groups().front()["lr"].item<double>();
}

void fit(Trainer& trainer) {
  trainer.fit(tiny_loader("train"), {tiny_loader("val", 6)});
}

/// What speaks of schedulers.
std::vector<std::string> about_schedules(const std::vector<std::string>& lines) {
  std::vector<std::string> found;
  for (const std::string& line : lines) {
    if (line.find("LR") != std::string::npos) {
      found.push_back(line);
    }
  }
  return found;
}

/// The warnings about schedules of a whole run.
std::vector<std::string> warnings_of(const Factory<Scheduler>& scheduler) {
  const TempDir dir;
  std::vector<std::string> lines;
  Trainer trainer(options_of(dir, scheduler), quiet_log(&lines));
  fit(trainer);
  return about_schedules(lines);
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Halves after every value but the first, none of which is better by so much.
ReduceLROnPlateau::Options impatient(const std::string& metric, const std::string& when) {
  ReduceLROnPlateau::Options options;
  options.initial_learning_rate = 0.5;
  options.metric = metric;
  options.when = when;
  options.factor = 0.5;
  options.patience = 0;
  options.threshold = 1e6;
  options.threshold_mode = "abs";
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/core/schedulers_callback");

TEST_CASE("C17: a schedule that ends before the run does warns at the start, by name and place") {
  const std::vector<std::string> lines = warnings_of(use<CosineDecayLR>({0.1, 0.025, 3}));
  REQUIRE(lines.size() == 1);
  for (const char* part : {"CosineDecayLR", "3ba", "8ba", "0.025"}) {
    CAPTURE(lines[0]);
    CHECK(holds(lines[0], part));
  }
}

TEST_CASE("a warning about a schedule of one group names the group") {
  const TempDir dir;
  CosineDecayLR::Options schedule = {0.1, 0.025, 3};
  schedule.target.param_group_tags = {"head"};
  std::vector<std::string> lines;
  TrainerOptions options = options_of(dir, use<CosineDecayLR>(schedule));
  Sgd::Options sgd;
  sgd.params = {{{"*bias"}, "head"}};
  options.optimizer = use<Sgd>(sgd);
  Trainer trainer(options, quiet_log(&lines));
  fit(trainer);
  lines = about_schedules(lines);
  REQUIRE(lines.size() == 1);
  CHECK(holds(lines[0], "lr of group \"head\""));
}

TEST_CASE("a schedule of the whole run, without an end, or in another unit does not warn") {
  CHECK(warnings_of(use<CosineDecayLR>({0.1, 0.0, 1.0})).empty());
  CHECK(warnings_of(use<LinearLR>({0.1, 0.0, 9})).empty());
  CHECK(warnings_of(use<LinearLR>({0.1, 0.0, "4sp"})).empty());
  SequentialLR::Options sequence;
  sequence.schedulers = {use<LinearLR>({0.0, 0.1, 3}), use<ConstantLR>({0.1})};
  CHECK(warnings_of(use<SequentialLR>(sequence)).empty());
}

TEST_CASE("C18: a ratio shortens the run with its schedule") {
  const TempDir dir;
  TrainerOptions options = options_of(dir, use<LinearLR>({0.5, 0.0, 8}));
  options.loop.scale_schedule_ratio = 0.5;
  std::vector<std::string> lines;
  Trainer trainer(options, quiet_log(&lines));
  fit(trainer);
  CHECK(trainer.state().global_step() == 4);
  CHECK(lr_of(trainer) == 0.0);
  CHECK(about_schedules(lines).empty());
}

TEST_CASE("C19: a ratio without a schedule is an error") {
  const TempDir dir;
  TrainerOptions options = options_of(dir, use<ConstantLR>({0.1}));
  options.schedulers.clear();
  options.loop.scale_schedule_ratio = 0.5;
  CHECK_THROWS_AS(Trainer(options, quiet_log()), Error);
}

TEST_CASE("a schedule that follows a metric is told each value, in time for the next update") {
  for (const char* mode : {"eager", "traced"}) {
    CAPTURE(mode);
    for (const auto& [metric, when, values] :
         std::vector<std::tuple<const char*, const char*, int>>{
             {"val/loss", "validation", 8}, {"loss", "update", 8}, {"loss", "epoch", 1}}) {
      CAPTURE(when);
      const TempDir dir;
      TrainerOptions options = options_of(dir, use<ReduceLROnPlateau>(impatient(metric, when)));
      options.backend.mode = mode;
      Trainer trainer(options, quiet_log());
      fit(trainer);
      CHECK(lr_of(trainer) == 0.5 * std::pow(0.5, values - 1));
    }
  }
}

TEST_CASE(
    "what a schedule has seen of a metric is resumed, and not taken over for another metric") {
  const TempDir dir;
  TrainerOptions options =
      options_of(dir, use<ReduceLROnPlateau>(impatient("val/loss", "validation")));
  options.checkpoint.steps = 3;
  {
    Trainer trainer(options, quiet_log());
    FitRun run(trainer, tiny_loader("train"), {tiny_loader("val", 6)}, {});
    while (trainer.state().global_step() < 5 && run.advance()) {
    }
  }
  std::vector<std::string> lines;
  {
    Trainer trainer(options, quiet_log(&lines));
    FitRun run(trainer, tiny_loader("train"), {tiny_loader("val", 6)}, {});
    CHECK(trainer.state().global_step() == 3);
    while (run.advance()) {
    }
    CHECK(lr_of(trainer) == 0.5 * std::pow(0.5, 7));
    CHECK(about_schedules(lines).empty());
  }
  options.loop.max_steps = 9;
  options.schedulers = {use<ReduceLROnPlateau>(impatient("loss", "update"))};
  Trainer other(options, quiet_log(&lines));
  fit(other);
  CHECK(lr_of(other) == 0.5);
  lines = about_schedules(lines);
  REQUIRE_FALSE(lines.empty());
  CHECK(holds(lines.front(), "ReduceLROnPlateau of loss"));
}

TEST_CASE("a damaged state of a schedule is refused before anything is loaded") {
  const TempDir dir;
  TrainerOptions options =
      options_of(dir, use<ReduceLROnPlateau>(impatient("val/loss", "validation")));
  Trainer trainer(options, quiet_log());
  fit(trainer);
  auto& schedulers = trainer.slot<SchedulersCallback>();
  StateDict state;
  schedulers.on_save_checkpoint(trainer, state);
  CHECK_NOTHROW(schedulers.check_checkpoint(trainer, state));
  StateDict damaged = state.at("schedulers").as_list().front().as_dict();
  damaged.set("state", StateDict{{"reductions", "many"}});
  state.set("schedulers", StateList{damaged});
  const double before = trainer.state().schedulers.front()->at(0);
  CHECK_THROWS_AS(schedulers.check_checkpoint(trainer, state), CheckpointError);
  CHECK(trainer.state().schedulers.front()->at(0) == before);
}

TEST_CASE("a relative schedule follows the numbers of the options, also after a resume") {
  const TempDir dir;
  TrainerOptions options = options_of(dir, use<LinearLR>({1.0, 0.0, 16, {"lr", {}, true}}));
  for (const int64_t until : {4, 8}) {
    options.loop.max_steps = until;
    Trainer trainer(options, quiet_log());
    fit(trainer);
    CHECK(lr_of(trainer) == 0.1 * (1.0 - static_cast<double>(until) / 16.0));
  }
}

TEST_SUITE_END();
