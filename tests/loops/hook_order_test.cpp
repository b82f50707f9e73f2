#include <doctest/doctest.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "callbacks/core/dataloader_callback.h"
#include "core/error.h"
#include "optim/schedulers.h"
#include "support/probe_callback.h"
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
                           "on_after_network",
                           "on_before_loss",
                           "on_after_loss",
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

const Names kForward = {
    "on_before_forward", "on_after_network", "on_before_loss", "on_after_loss", "on_after_forward"};

void append(Names& all, const Names& more) {
  all.insert(all.end(), more.begin(), more.end());
}

/// The hooks of one evaluated batch of a family, in an eager step.
Names evaluation_step(const std::string& family) {
  Names names{"on_" + family + "_step_start"};
  append(names, kForward);
  names.push_back("on_" + family + "_step_end");
  return names;
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

constexpr int64_t kUpdates = 6;
constexpr int64_t kCadence = 3;  // updates from one validation, and from one save, to the next
constexpr int64_t kValBatches = 4;
constexpr int64_t kEpoch = 5;  // updates

DataLoader val_loader() {
  return tiny_loader("val", 2 * kValBatches);
}

/// The hooks that are expected, in order.
class Order {
 public:
  /// \param bodies  how often the body of a step runs; after that the step is replayed
  explicit Order(int64_t bodies) : bodies_(bodies) {}

  const Names& names() const { return names_; }

  void add(const Names& more) { append(names_, more); }

  void load() {
    add({"on_before_load_checkpoint",
         "preprocess_checkpoint",
         "check_checkpoint",
         "on_load_checkpoint"});
  }

  /// So many updates are done already.
  void resume_at(int64_t update) { update_ = update; }

  /// A stage of training with a save at its last update.
  void stage() {
    add({"on_enter_train", "on_train_start"});
    for (int64_t batch = 0; batch < kCadence; ++batch) {
      add(update_ % kEpoch == 0 ? Names{"on_epoch_start"} : Names{});
      add({"on_dataloader_start", "on_dataloader_end", "on_train_batch_start"});
      add(train_steps_++ < bodies_ ? kUpdateStep : Names{});
      add({"on_train_batch_end"});
      add(++update_ % kEpoch == 0 ? Names{"on_epoch_end"} : Names{});
    }
    add({"on_save_checkpoint", "postprocess_checkpoint", "on_after_save_checkpoint"});
    add({"on_train_end"});
  }

  /// The batches of a validation loader, or of a prediction.
  void validate_loader(const std::string& family = "validate") {
    add({"on_" + family + "_start"});
    for (int64_t batch = 0; batch < kValBatches; ++batch) {
      add({"on_" + family + "_batch_start"});
      add(validate_steps_++ < bodies_ ? evaluation_step(family) : Names{});
      add({"on_" + family + "_batch_end"});
    }
    add({"on_" + family + "_end"});
  }

  /// A loader that is validated with the model as it is.
  void loader() {
    add({"on_enter_validate", "on_before_load_checkpoint"});
    validate_loader();
  }

  /// The validation between two stages.
  void validation() {
    add({"on_enter_validate_all", "on_before_load_checkpoint"});
    loader();
    add({"run_validation"});
  }

 private:
  Names names_;
  int64_t bodies_;
  int64_t update_ = 0;
  int64_t train_steps_ = 0;
  int64_t validate_steps_ = 0;
};

/// One thing to ask of a Trainer, and the hooks that it shall fire.
struct Task {
  const char* name;
  int64_t saved_updates;  ///< of the run that the directory holds already
  std::function<void(Trainer&)> run;
  std::function<void(Order&)> expect;
};

std::vector<Task> tasks() {
  const auto fit = [](Trainer& trainer) { trainer.fit(tiny_loader("train"), {val_loader()}); };
  return {{"a fit",
           0,
           fit,
           [](Order& order) {
             order.add({"on_enter_fit", "on_before_load_checkpoint", "on_fit_start"});
             for (int64_t loop = 0; loop < kUpdates / kCadence; ++loop) {
               order.stage();
               order.validation();
             }
             order.add({"on_fit_end"});
           }},
          {"a fit that resumes where a validation is due",
           kCadence,
           fit,
           [](Order& order) {
             order.add({"on_enter_fit"});
             order.load();
             order.add({"on_fit_start"});
             order.resume_at(kCadence);
             order.validation();
             order.stage();
             order.validation();
             order.add({"on_fit_end"});
           }},
          {"validate with the newest checkpoint",
           kUpdates,
           [](Trainer& trainer) { trainer.validate(val_loader()); },
           [](Order& order) {
             order.add({"on_enter_validate"});
             order.load();
             order.validate_loader();
           }},
          {"predict with the newest checkpoint",
           kUpdates,
           [](Trainer& trainer) { trainer.predict(val_loader()); },
           [](Order& order) {
             order.add({"on_enter_validate"});
             order.load();
             order.validate_loader("predict");
           }},
          {"validate_all over two checkpoints",
           kUpdates,
           [](Trainer& trainer) { trainer.validate_all_indexed({val_loader()}); },
           [](Order& order) {
             order.add({"on_enter_validate_all"});
             for (int64_t checkpoint = 0; checkpoint < kUpdates / kCadence; ++checkpoint) {
               order.load();
               order.loader();
               order.add({"run_validation"});
             }
           }}};
}

/// A backend's mode, and how often it runs the body of a step that it meets again and again.
struct Bodies {
  const char* mode;
  const char* verify;
  int64_t times;
};

constexpr Bodies kBodies[] = {{"eager", "off", std::numeric_limits<int64_t>::max()},
                              {"traced", "off", 2},     // both captures
                              {"traced", "first", 3}};  // and the check of the first replay

/// The hooks that a Trainer fires from the end of its construction on, in a run of which some
/// updates are done.
Names recorded_hooks(const Task& task, const Bodies& bodies) {
  Recorded run;
  run.options.backend.mode = bodies.mode;
  run.options.backend.verify = bodies.verify;
  run.options.loop.eval_frequency = kCadence;
  run.options.checkpoint.steps = kCadence;
  if (task.saved_updates > 0) {
    run.options.loop.max_steps = task.saved_updates;
    Trainer(run.options, quiet_log()).fit(tiny_loader("train"), {val_loader()});
  }
  run.options.loop.max_steps = kUpdates;
  Trainer trainer(run.options, quiet_log());
  run.hooks.clear();
  task.run(trainer);
  return run.hooks;
}

}  // namespace

TEST_SUITE_BEGIN("loops/hook_order");

TEST_CASE("T10: each set-up hook finishes for all callbacks before the next one begins") {
  Recorded run;
  run.options.callbacks.push_back(run.options.callbacks.front());
  const Trainer trainer(run.options, quiet_log());
  CHECK(run.hooks == Names{"pre_setup",
                           "pre_setup",
                           "on_model_init",  // while the model's slot has its setup
                           "on_model_init",
                           "setup",
                           "setup",
                           "post_setup",
                           "post_setup"});
}

TEST_CASE("T11: finalize comes once for each callback, at the end") {
  Recorded run;
  run.options.callbacks.push_back(run.options.callbacks.front());
  { const Trainer trainer(run.options, quiet_log()); }
  CHECK(std::count(run.hooks.begin(), run.hooks.end(), "finalize") == 2);
  CHECK(Names(run.hooks.end() - 2, run.hooks.end()) == Names{"finalize", "finalize"});
}

TEST_CASE(
    "T32, T33, T44: fit, validate and validate_all fire every hook in the stated order; host hooks "
    "are the same under both backends, in-step hooks fire in captures and checks only under "
    "traced") {
  for (const Task& task : tasks()) {
    for (const Bodies& bodies : kBodies) {
      CAPTURE(std::string(task.name));
      CAPTURE(std::string(bodies.mode));
      CAPTURE(std::string(bodies.verify));
      Order order(bodies.times);
      task.expect(order);
      CHECK(recorded_hooks(task, bodies) == order.names());
    }
  }
}

TEST_CASE("the hooks in the step are those that the table of hooks says") {
  Order every(std::numeric_limits<int64_t>::max());
  every.stage();
  every.validate_loader();
  every.validate_loader("predict");
  const Names& fired = every.names();
  for (const HookInfo& hook : all_hooks()) {
    if (hook.site == HookSite::Step) {
      CAPTURE(std::string(hook.name));
      CHECK(std::count(fired.begin(), fired.end(), hook.name) > 0);
    }
  }
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

TEST_CASE("the last batch of a stage of training is its final iteration") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 6;
  options.loop.eval_frequency = 4;
  options.loop.grad_accum_steps = 2;  // an epoch is groups of 2, 2 and 1 batches
  std::vector<int64_t> last;
  int64_t batch = 0;
  ProbeCallback::Options probe;
  probe.train_batch_start = [&](Trainer& trainer, const Batch&) {
    if (trainer.state().executor->is_final_iteration()) {
      last.push_back(batch);
    }
    ++batch;
  };
  options.callbacks = {use<ProbeCallback>(probe)};
  Trainer(options, quiet_log()).fit(tiny_loader("train"), {tiny_loader("val")});
  CHECK(batch == 10);
  CHECK(last == std::vector<int64_t>{6, 9});
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

TEST_CASE("T36: what an exception hook throws reaches the caller, with the first error nested") {
  Recorded run;
  ProbeCallback::Options probe;
  probe.train_batch_end = [](Trainer&) { throw std::out_of_range("the first"); };
  probe.fit_exception = [](Trainer&) { throw std::runtime_error("the second"); };
  run.options.callbacks.push_back(use<ProbeCallback>(probe));
  Trainer trainer(run.options, quiet_log());
  std::exception_ptr thrown;
  try {
    trainer.fit(tiny_loader("train"));
  } catch (...) {
    thrown = std::current_exception();
  }
  REQUIRE(thrown);
  const std::string told = describe(thrown);
  const size_t second = told.find("the second");
  const size_t first = told.find("the first");
  REQUIRE(second != std::string::npos);
  REQUIRE(first != std::string::npos);
  CHECK(second < first);
  CHECK(told.find("ProbeCallback.on_fit_exception") < second);
  CHECK_THROWS_AS(std::rethrow_exception(root_cause(thrown)), std::out_of_range);
  CHECK(run.hooks.back() == "on_fit_exception");  // the recording callback comes first
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
    append(expected, evaluation_step("validate"));
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
    try {
      std::rethrow_if_nested(error);
      FAIL("the cause is not nested");
    } catch (const HookError&) {
      FAIL("wrapped twice");
    } catch (const std::runtime_error& cause) {
      CHECK(std::string(cause.what()).find("planted") != std::string::npos);
    }
  }
  CHECK(std::count(later.begin(), later.end(), "on_fit_start") == 0);
}

TEST_SUITE_END();
