#include "trainer/dry_run.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "callbacks/builtin/notify_command.h"
#include "callbacks/builtin/threshold_stopper.h"
#include "callbacks/core/early_exit_callback.h"
#include "callbacks/core/run_schedule_callback.h"
#include "callbacks/global_callbacks.h"
#include "core/error.h"
#include "optim/schedulers.h"
#include "support/glyphs_run.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "trainer/run_memory.h"
#include "trainer/trainer.h"

TEST_SUITE_BEGIN("trainer/dry_run");

using namespace rondo;
using rondo::test::glyphs_run;
using rondo::test::ProbeCallback;
using rondo::test::TempDir;

namespace {

/// Whatever its length, a run is over after one update.
class OneUpdatePlan final : public RunPlan {
 public:
  using RunPlan::RunPlan;

  bool is_over(const Timestamp& time) const override { return time.update >= 1; }

  bool ends_stage(const Timestamp&, const Timestamp& after) const override {
    return is_over(after);
  }
};

class OneUpdate final : public RunScheduleCallback {
 protected:
  std::unique_ptr<RunPlan> make_plan(const LoopOptions& options,
                                     const Timestamp& start,
                                     std::optional<int64_t> updates_per_epoch) const override {
    return std::make_unique<OneUpdatePlan>(options, start, updates_per_epoch);
  }
};

}  // namespace

TEST_CASE("a dry run does not hear who would end the run, and notifies nobody") {
  const TempDir dir;
  RunConfig run = glyphs_run(dir / "run");
  const RunMemory plain = memory_of(dry_run_of_all_steps(run).steps, run);
  TrainerOptions& init = run.init;
  init.logging.log_steps = 1;
  ThresholdStopper::Options stopper;
  stopper.metric = "no such metric";
  stopper.when = "update";
  SUBCASE("a stopper and a notification") {
    init.callbacks.push_back(use<ThresholdStopper>(stopper));
    init.callbacks.push_back(use<NotifyCommand>({"touch " + (dir / "notified").string()}));
  }
  SUBCASE("a callback that asks for a stop") {
    ProbeCallback::Options probe;
    probe.train_batch_end = [](Trainer& trainer) { trainer.request_stop("enough"); };
    init.callbacks.push_back(use<ProbeCallback>(probe));
  }
  SUBCASE("an early exit") {
    ProbeCallback::Options probe;
    probe.train_batch_start = [](Trainer& trainer, const Batch&) {
      trainer.slot<EarlyExitCallback>().add([] { return true; });
    };
    init.callbacks.push_back(use<ProbeCallback>(probe));
  }
  ThresholdStopper global(stopper);
  const GlobalCallbackScope scope(global);
  const RunMemory planned = memory_of(dry_run_of_all_steps(run).steps, run);
  CHECK(planned.of_state() == plain.of_state());
  CHECK(planned.of_replays() == plain.of_replays());
  CHECK_FALSE(std::filesystem::exists(dir / "notified"));
}

TEST_CASE("a dry run that ends by itself, or plans nothing, is an error and no plan of 0 bytes") {
  const TempDir dir;
  RunConfig run = glyphs_run(dir / "run");
  SUBCASE("a schedule that is over after one update") {
    run.init.slots.emplace("run_schedule", use<OneUpdate>());
    CHECK_THROWS_AS(dry_run_of_all_steps(run), Error);
  }
  SUBCASE("steps that change all the time") {
    ProbeCallback::Options probe;
    probe.train_batch_start = [](Trainer& trainer, const Batch&) {
      trainer.state().backend->invalidate("the moon rose");
    };
    run.init.callbacks.push_back(use<ProbeCallback>(probe));
    CHECK_THROWS_AS(dry_run_of_all_steps(run), NotSupportedError);
  }
}

TEST_CASE("a dry run has the schedules of the run, also of one in samples") {
  const TempDir dir;
  RunConfig run = glyphs_run(dir / "run");
  run.init.loop.max_steps.reset();
  run.init.loop.max_duration = Time("64sp");
  SequentialLR::Options sequence;
  sequence.schedulers = {use<LinearLR>({0.0, 1.0, "8sp"}), use<CosineDecayLR>({1.0, 0.0, 0.5})};
  run.init.schedulers = {use<SequentialLR>(sequence)};
  CHECK(dry_run_of_all_steps(run).steps.size() == 1);
}

TEST_CASE("a dry run goes on beyond the end of a run with a schedule of its own") {
  const TempDir dir;
  RunConfig run = glyphs_run(dir / "run");
  run.init.loop.max_steps = 2;
  run.init.slots.emplace("run_schedule", use<RunScheduleCallback>());
  CHECK(dry_run_of_all_steps(run).steps.size() == 1);
}

TEST_CASE("a dry run of all steps replays those that end a long pass, if the run does") {
  const TempDir dir;
  const auto steps_of = [&](const std::string& length) {
    const std::vector<std::string> overrides = {
        "trainer.init.loop={ grad_accum_steps = 3, " + length + " }",
        "trainer.fit.train_dataloader.size=981"};  // 20 groups and 21 samples
    std::vector<std::string> names;
    for (const StepReport& step :
         dry_run_of_all_steps(glyphs_run(dir / "run", "[784, 10]", overrides)).steps) {
      CHECK_MESSAGE(step.stats.replays >= 2, step.name);
      names.push_back(step.name);
    }
    return names;
  };
  std::vector<std::string> names = {
      "train_accumulate_first_of_3.0", "train_accumulate_of_3.0", "train_update_of_3.0"};
  CHECK(steps_of("max_steps = 62") == names);
  CHECK(steps_of("max_duration = \"2942sp\"") == names);
  CHECK(steps_of("num_epochs = 2") == names);
  names.emplace_back("train_accumulate_first_weighted.0");
  names.emplace_back("train_update_weighted.0");
  CHECK(steps_of("max_steps = 63") == names);
  CHECK(steps_of("max_duration = \"2943sp\"") == names);
  CHECK(steps_of("num_epochs = 3") == names);
}

TEST_CASE("a dry run of all steps replays those of the run's validations, and no others") {
  const TempDir dir;
  const auto steps_of = [&](std::vector<std::string> overrides) {
    overrides.emplace_back(
        "trainer.fit.val_dataloader={ dataset = \"Glyphs\", size = 1000, batch_size = 30 }");
    std::vector<std::string> names;
    const DryRun dry = dry_run_of_all_steps(glyphs_run(dir / "run", "[784, 10]", overrides));
    for (const StepReport& step : dry.steps) {
      CHECK_MESSAGE(step.stats.replays >= 2, step.name);
      names.push_back(step.name);
    }
    for (const DataLoader& loader : dry.val) {
      CHECK(loader.size() <= 5);
    }
    return names;
  };
  std::vector<std::string> names = {"train_update.0"};
  CHECK(steps_of({"trainer.init.loop.eval_frequency=0"}) == names);
  names.emplace_back("validate.0");
  CHECK(steps_of({"trainer.init.loop.eval_steps=0.9"}) == names);
  CHECK(steps_of({"trainer.init.loop.eval_steps=1"}) == names);
  names.emplace_back("validate.1");  // 10 samples
  CHECK(steps_of({}) == names);
  CHECK(steps_of({"trainer.init.loop.eval_steps=34"}) == names);
}

TEST_CASE("a dry run of all steps has validations of few samples, and of none") {
  const TempDir dir;
  const auto steps_of = [&](const std::string& size) {
    return dry_run_of_all_steps(
               glyphs_run(dir / "run",
                          "[784, 10]",
                          {"trainer.fit.val_dataloader={ dataset = \"Glyphs\", size = " + size +
                           ", batch_size = 30, drop_last = true }"}))
        .steps.size();
  };
  CHECK(steps_of("40") == 2);
  CHECK(steps_of("29") == 1);
}

TEST_CASE("a dry run with short passes has the epochs of the run") {
  const TempDir dir;
  RunConfig run = glyphs_run(dir / "run", "[784, 10]", {"trainer.fit.train_dataloader.size=170"});
  run.init.loop.max_steps.reset();
  run.init.loop.num_epochs = 3;
  SequentialLR::Options sequence;
  sequence.schedulers = {use<LinearLR>({0.0, 1.0, "1ep"}), use<CosineDecayLR>({1.0, 0.0, 0.5})};
  sequence.milestones = {"11ba"};
  run.init.schedulers = {use<SequentialLR>(sequence)};
  CHECK(dry_run_of_all_steps(run).steps.size() == 2);
}

TEST_CASE("a dry run of a given length ends there, whatever ends a pass") {
  const TempDir dir;
  const RunConfig run =
      glyphs_run(dir / "run",
                 "[784, 10]",
                 {"trainer.fit.train_dataloader.size=170"});  // 10 batches and a short one
  const DryRun dry = dry_run(run, 15);
  REQUIRE(dry.steps.size() == 1);
  CHECK(dry.steps[0].stats.replays < 15);
}

TEST_CASE("a dry run of a long pass has the data set of the run") {
  const TempDir dir;
  RunConfig run =
      glyphs_run(dir / "run",
                 "[784, 10]",
                 {"trainer.fit.train_dataloader.size=1000", "trainer.init.loop.max_steps=99"});
  const DataSource* const source = &run.fit->train.source();
  const DataSource* seen = nullptr;
  ProbeCallback::Options probe;
  probe.fit_start = [&](Trainer&, const DataLoader& train) { seen = &train.source(); };
  run.init.callbacks.push_back(use<ProbeCallback>(probe));
  dry_run_of_all_steps(run);
  CHECK(seen == source);
}

TEST_CASE("a loss that goes bad ends a dry run that has planned everything") {
  const TempDir dir;
  RunConfig run = glyphs_run(dir / "run");
  int64_t bad = 6;
  ProbeCallback::Options probe;
  probe.train_batch_end = [&](Trainer& trainer) {
    if (trainer.state().global_step() == bad) {
      throw NonFiniteLossError("planted");
    }
  };
  run.init.callbacks.push_back(use<ProbeCallback>(probe));
  CHECK(dry_run(run, 50).steps.size() == 1);
  bad = 1;
  CHECK_THROWS_AS(dry_run(run, 50), NonFiniteLossError);
}

TEST_SUITE_END();
