#include "callbacks/core/run_schedule_callback.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "support/probe_callback.h"
#include "support/recording_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Validates when the count of updates is a power of two.
class PowersOfTwo final : public RunPlan {
 public:
  using RunPlan::RunPlan;

  bool ends_stage(const Timestamp& before, const Timestamp& after) const override {
    return is_over(after) || (before.update != after.update && is_power(after.update));
  }

  int64_t loop_idx(const Timestamp& time) const override {
    int64_t index = 0;
    for (int64_t power = 1; power <= time.update; power *= 2) {
      ++index;
    }
    return index;
  }

 private:
  static bool is_power(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }
};

class PowersSchedule final : public RunScheduleCallback {
 protected:
  std::unique_ptr<RunPlan> make_plan(const LoopOptions& options,
                                     const Timestamp& start,
                                     std::optional<int64_t> updates_per_epoch) const override {
    return std::make_unique<PowersOfTwo>(options, start, updates_per_epoch);
  }
};

}  // namespace

TEST_SUITE_BEGIN("callbacks/core/run_schedule_callback");

TEST_CASE("T98: there is a schedule while a fit runs, and none before or after") {
  const TempDir dir;
  int64_t total = 0;
  ProbeCallback::Options probe;
  const RunScheduleCallback* schedule = nullptr;
  probe.train_batch_end = [&](Trainer&) { total = schedule->plan().length().total->count(); };
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<ProbeCallback>(probe)};
  options.loop.max_steps = 3;
  Trainer trainer(options, quiet_log());
  schedule = trainer.step_slots().run_schedule;
  CHECK_THROWS_AS(schedule->plan(), UsageError);
  trainer.fit(tiny_loader("train"));
  CHECK(total == 3);
  CHECK_THROWS_AS(schedule->plan(), UsageError);
}

TEST_CASE("T38: when a failure is told the schedule is gone and the training data is still held") {
  const TempDir dir;
  bool has_schedule = true;
  bool has_data = false;
  ProbeCallback::Options probe;
  probe.train_batch_end = [](Trainer&) { throw std::runtime_error("planted"); };
  probe.fit_exception = [&](Trainer& trainer) {
    has_schedule = trainer.state().plan != nullptr;
    StateDict state;
    trainer.call(hooks::on_save_checkpoint, state);
    has_data = state.contains("dataloader");
  };
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<ProbeCallback>(probe)};
  Trainer trainer(options, quiet_log());
  CHECK_THROWS_AS(trainer.fit(tiny_loader("train")), HookError);
  CHECK_FALSE(has_schedule);
  CHECK(has_data);
}

TEST_CASE("a schedule of one's own decides when a fit validates") {
  const TempDir dir;
  std::vector<std::string> hooks;
  std::vector<int64_t> indices;
  RecordingCallback::Options recording;
  recording.hooks = &hooks;
  recording.with_update = true;
  ProbeCallback::Options probe;
  probe.run_validation = [&](std::optional<int64_t> loop_idx, bool) {
    indices.push_back(loop_idx.value_or(-1));
  };
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<RecordingCallback>(recording), use<ProbeCallback>(probe)};
  options.slots["run_schedule"] = use<PowersSchedule>();
  options.loop.max_steps = 5;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"), {tiny_loader("val", 2)});
  std::vector<std::string> validations;
  for (const std::string& hook : hooks) {
    if (hook.rfind("on_validate_start@", 0) == 0) {
      validations.push_back(hook.substr(18));
    }
  }
  CHECK(validations == std::vector<std::string>{"1", "2", "4", "5"});
  CHECK(indices == std::vector<int64_t>{0, 1, 2, 3});
}

TEST_SUITE_END();
