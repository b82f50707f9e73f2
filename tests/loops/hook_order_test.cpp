#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "callbacks/dataloader_callback.h"
#include "core/error.h"
#include "optim/lr_schedulers.h"
#include "support/recording_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

using Names = std::vector<std::string>;

/// Hooks of one training step at which the schedulers move.
const Names kUpdateStep = {"on_train_step_start",
                           "on_before_forward",
                           "on_after_forward",
                           "on_before_backward",
                           "on_after_backward",
                           "on_before_optimizer_step",
                           "on_after_optimizer_step",
                           "on_before_optimizer_zero_grad",
                           "on_after_optimizer_zero_grad",
                           "on_before_scheduler_step",
                           "on_after_scheduler_step",
                           "on_train_step_end"};

const Names kValidateStep = {
    "on_validate_step_start", "on_before_forward", "on_after_forward", "on_validate_step_end"};

void append(Names& all, const Names& more) {
  all.insert(all.end(), more.begin(), more.end());
}

/// The hooks that a Trainer fires from the end of its construction on.
struct Recorded {
  TempDir dir;
  Names hooks;
  TrainerOptions options = tiny_options(dir / "run");

  Recorded() {
    RecordingCallback::Options recording;
    recording.hooks = &hooks;
    options.callbacks = {use<RecordingCallback>(recording)};
    options.schedulers = {use<ConstantLR>({0.1})};
  }
};

/// Fails before the loop has its turn.
struct FailingDataloader final : DataloaderCallback {
  void on_enter_fit(Trainer&, Cleanup&, const DataLoader&, const Loaders&, Loop&) override {
    throw std::runtime_error("planted");
  }
};

Names expected_fit(bool in_step) {
  Names all = {"on_enter_fit", "on_before_load_checkpoint", "on_fit_start"};
  for (int loop = 0; loop < 2; ++loop) {
    append(all, {"on_enter_train", "on_train_start"});
    for (int batch = 0; batch < 2; ++batch) {
      all.push_back("on_train_batch_start");
      if (in_step) {
        append(all, kUpdateStep);
      }
      all.push_back("on_train_batch_end");
    }
    append(all,
           {"on_train_end",
            "on_enter_validate_all",
            "on_before_load_checkpoint",
            "on_enter_validate",
            "on_before_load_checkpoint",
            "on_validate_start"});
    for (int batch = 0; batch < 2; ++batch) {
      all.push_back("on_validate_batch_start");
      if (in_step) {
        append(all, kValidateStep);
      }
      all.push_back("on_validate_batch_end");
    }
    append(all, {"on_validate_end", "run_validation"});
  }
  all.push_back("on_fit_end");
  return all;
}

bool is_step_hook(const std::string& name) {
  for (const HookInfo& hook : all_hooks()) {
    if (name == hook.name) {
      return hook.site == HookSite::Step;
    }
  }
  return false;
}

Names without_step_hooks(Names names) {
  names.erase(std::remove_if(names.begin(), names.end(), is_step_hook), names.end());
  return names;
}

}  // namespace

TEST_SUITE_BEGIN("loops/hook_order");

TEST_CASE(
    "T10: each set-up hook comes after the one before it; T11: finalize comes once at the end") {
  Recorded run;
  { const Trainer trainer(run.options, quiet_log()); }
  CHECK(run.hooks == Names{"pre_setup", "setup", "post_setup", "finalize"});
}

TEST_CASE("T32, T33: a fit with interleaved validation fires every hook in the stated order") {
  Recorded run;
  run.options.loop.max_steps = 4;
  run.options.loop.eval_frequency = 2;
  Trainer trainer(run.options, quiet_log());
  run.hooks.clear();
  trainer.fit(tiny_loader("train"), {tiny_loader("val", 4)});
  CHECK(run.hooks == expected_fit(/*in_step=*/true));
}

TEST_CASE(
    "host hooks are the same under both backends; in-step hooks fire in captures only under "
    "traced") {
  Recorded run;
  run.options.backend.mode = "traced";
  run.options.backend.verify = "off";
  run.options.loop.max_steps = 4;
  run.options.loop.eval_frequency = 2;
  Trainer trainer(run.options, quiet_log());
  run.hooks.clear();
  trainer.fit(tiny_loader("train"), {tiny_loader("val", 4)});
  CHECK(without_step_hooks(run.hooks) == expected_fit(/*in_step=*/false));
  CHECK(std::count(run.hooks.begin(), run.hooks.end(), "on_train_step_start") == 2);
  CHECK(std::count(run.hooks.begin(), run.hooks.end(), "on_validate_step_start") == 2);
}

TEST_CASE("T72: batches within a group fire no optimizer, zero_grad or scheduler hook") {
  Recorded run;
  run.options.loop.max_steps = 1;
  run.options.loop.grad_accum_steps = 3;
  run.options.loop.eval_frequency = 0;
  Trainer trainer(run.options, quiet_log());
  run.hooks.clear();
  trainer.fit(tiny_loader("train"));
  const auto count = [&](const char* name) {
    return std::count(run.hooks.begin(), run.hooks.end(), name);
  };
  CHECK(count("on_train_batch_end") == 3);
  CHECK(count("on_after_backward") == 3);
  CHECK(count("on_before_optimizer_step") == 1);
  CHECK(count("on_after_optimizer_zero_grad") == 1);
  CHECK(count("on_after_scheduler_step") == 1);
}

TEST_CASE("T34: a failing train batch is told to train, then to fit, and goes on") {
  Recorded run;
  RecordingCallback::Options throwing;
  throwing.hooks = &run.hooks;
  throwing.throws_in = "on_train_batch_end";
  run.options.callbacks = {use<RecordingCallback>(throwing)};
  Trainer trainer(run.options, quiet_log());
  CHECK_THROWS_AS(trainer.fit(tiny_loader("train")), HookError);
  REQUIRE(run.hooks.size() > 2);
  CHECK(Names(run.hooks.end() - 2, run.hooks.end()) ==
        Names{"on_train_exception", "on_fit_exception"});
}

TEST_CASE("T40: after a failed fit no executor is left, in training or in validation") {
  for (const char* hook : {"on_train_batch_start", "on_validate_batch_end", "on_validate_start"}) {
    Recorded run;
    RecordingCallback::Options throwing;
    throwing.hooks = &run.hooks;
    throwing.throws_in = hook;
    run.options.callbacks = {use<RecordingCallback>(throwing)};
    Trainer trainer(run.options, quiet_log());
    CHECK_THROWS_AS(trainer.fit(tiny_loader("train"), {tiny_loader("val", 4)}), HookError);
    CHECK(trainer.state().executor == nullptr);
    CHECK_FALSE(trainer.state().is_training);
  }
}

TEST_CASE("T35: a failing validation within a fit is told to validate, then to fit") {
  Recorded run;
  RecordingCallback::Options throwing;
  throwing.hooks = &run.hooks;
  throwing.throws_in = "on_validate_batch_end";
  run.options.callbacks = {use<RecordingCallback>(throwing)};
  Trainer trainer(run.options, quiet_log());
  CHECK_THROWS_AS(trainer.fit(tiny_loader("train"), {tiny_loader("val", 4)}), HookError);
  CHECK(Names(run.hooks.end() - 2, run.hooks.end()) ==
        Names{"on_validate_exception", "on_fit_exception"});
  CHECK(std::count(run.hooks.begin(), run.hooks.end(), "on_train_exception") == 0);
}

TEST_CASE("T37: a failing on_fit_start reaches on_fit_exception") {
  Recorded run;
  RecordingCallback::Options throwing;
  throwing.hooks = &run.hooks;
  throwing.throws_in = "on_fit_start";
  run.options.callbacks = {use<RecordingCallback>(throwing)};
  Trainer trainer(run.options, quiet_log());
  CHECK_THROWS_AS(trainer.fit(tiny_loader("train")), HookError);
  CHECK(run.hooks.back() == "on_fit_exception");
}

TEST_CASE("T37: a core callback before the loop that fails on entering is not told to the others") {
  Recorded run;
  run.options.slots["dataloader"] = use<FailingDataloader>();
  Trainer trainer(run.options, quiet_log());
  CHECK_THROWS_AS(trainer.fit(tiny_loader("train")), HookError);
  CHECK(std::count(run.hooks.begin(), run.hooks.end(), "on_enter_fit") == 0);
  CHECK(std::count(run.hooks.begin(), run.hooks.end(), "on_fit_exception") == 0);
}

TEST_CASE("T44: a validation fires no backward, optimizer or scheduler hook") {
  Recorded run;
  Trainer trainer(run.options, quiet_log());
  run.hooks.clear();
  trainer.validate(tiny_loader("val", 4));
  Names expected = {"on_enter_validate", "on_before_load_checkpoint", "on_validate_start"};
  for (int batch = 0; batch < 2; ++batch) {
    expected.push_back("on_validate_batch_start");
    append(expected, kValidateStep);
    expected.push_back("on_validate_batch_end");
  }
  expected.push_back("on_validate_end");
  CHECK(run.hooks == expected);
}

TEST_CASE(
    "T16: the error names callback and hook and nests its cause; later callbacks are not called") {
  Recorded run;
  Names later;
  RecordingCallback::Options first;
  first.hooks = &run.hooks;
  first.throws_in = "on_fit_start";
  RecordingCallback::Options second;
  second.hooks = &later;
  run.options.callbacks = {use<RecordingCallback>(first), use<RecordingCallback>(second)};
  Trainer trainer(run.options, quiet_log());
  try {
    trainer.fit(tiny_loader("train"));
    FAIL("nothing was thrown");
  } catch (const HookError& error) {
    CHECK(std::string(error.what()).find("RecordingCallback.on_fit_start") != std::string::npos);
    CHECK_THROWS_AS(std::rethrow_exception(root_cause(std::current_exception())),
                    std::runtime_error);
  }
  CHECK(std::count(later.begin(), later.end(), "on_fit_start") == 0);
}

TEST_SUITE_END();
