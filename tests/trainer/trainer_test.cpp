#include "trainer/trainer.h"

#include <doctest/doctest.h>

#include <exception>
#include <filesystem>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "callbacks/builtin/keep_n_checkpoints.h"
#include "callbacks/core/checkpoint_callback.h"
#include "callbacks/core/early_exit_callback.h"
#include "callbacks/core/run_schedule_callback.h"
#include "callbacks/global_callbacks.h"
#include "core/error.h"
#include "support/recording_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"

using namespace rondo;
using namespace rondo::test;

namespace {

struct Plain final : Callback {};

struct Custom final : Callback {
  bool on_custom(Trainer&, std::string_view hook, HookArgs& args) override {
    if (hook != "on_level_up") {
      return false;
    }
    ++*std::any_cast<int*>(args.at("count"));
    return true;
  }
};

struct Failing final : Callback {
  bool on_custom(Trainer&, std::string_view, HookArgs&) override {
    throw std::runtime_error("no level");
  }
};

/// A callback that writes its name down in post_setup.
template <class Base>
struct Noted final : Base {
  struct Options {
    std::vector<std::string>* order = nullptr;
    std::string name;
  };

  explicit Noted(const Options& options) : options_(options) {}

  void post_setup(Trainer& trainer) override {
    Base::post_setup(trainer);
    options_.order->push_back(options_.name);
  }

 private:
  Options options_;
};

struct SilentLogger : Logger {
  void log(const Metrics&, int64_t) override {}
};

std::vector<std::string> names_of(const Trainer& trainer) {
  std::vector<std::string> names;
  for (const CallbackMap::Entry& entry : trainer.callbacks().entries()) {
    names.push_back(entry.name);
  }
  return names;
}

}  // namespace

TEST_SUITE_BEGIN("trainer/trainer");

TEST_CASE(
    "T1: a missing model_dir or model is an error that names it, before anything is written") {
  const TempDir dir;
  const auto message = [](const TrainerOptions& options) -> std::string {
    try {
      const Trainer trainer(options, quiet_log());
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  const auto names = [](const std::string& text, const char* option) {
    return std::regex_search(text, std::regex("\\b" + std::string(option) + "\\b"));
  };
  TrainerOptions no_model = tiny_options(dir / "run");
  no_model.model = {};
  CHECK(names(message(no_model), "model"));
  CHECK_FALSE(names(message(no_model), "model_dir"));
  CHECK(names(message(tiny_options("")), "model_dir"));
  CHECK(std::filesystem::is_empty(dir.path()));
}

TEST_CASE(
    "T5, T7: core slots, then users in their order, then loggers, then schedule and checkpoint") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  std::vector<MemoryLogger::Entry> entries;
  MemoryLogger::Options memory;
  memory.entries = &entries;
  options.callbacks = {use<Plain>(), use<Custom>(), use<Plain>(), use<Plain>()};
  options.loggers = {use<MemoryLogger>(memory)};
  const Trainer trainer(options, quiet_log());
  CHECK(names_of(trainer) ==
        std::vector<std::string>{
            "autorestart", "artifact_dir", "reproducibility", "backend",      "model",
            "dataloader",  "optimizer",    "schedulers",      "precision",    "sparsity",
            "loop",        "logging",      "loss_accum",      "metrics",      "grad_accum",
            "step",        "algorithms",   "early_exit",      "Plain",        "Custom",
            "Plain_2",     "Plain_3",      "MemoryLogger",    "run_schedule", "checkpoint"});
}

TEST_CASE("T4: without options updates are logged one by one, the end is saved and continued") {
  const TempDir dir;
  std::vector<MemoryLogger::Entry> logged;
  TrainerOptions options = tiny_options(dir / "run");
  options.loggers = {use<MemoryLogger>({&logged})};
  for (int i = 0; i < 2; ++i) {  // the second one finds that all is done
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train", 10, 2));
    CHECK(trainer.state().global_step() == 5);
    CHECK(values_of(logged, "loss").size() == 5);
  }
  CHECK(std::filesystem::exists(dir / "run" / "checkpoint_5.pt"));
  CHECK_FALSE(std::filesystem::exists(dir / "run" / "checkpoint_4.pt"));
}

TEST_CASE("T5: hooks reach core slots, users, loggers, schedule, checkpoint and globals in turn") {
  const TempDir dir;
  std::vector<std::string> order;
  TrainerOptions options = tiny_options(dir / "run");
  options.slots["checkpoint"] = use<Noted<CheckpointCallback>>({&order, "checkpoint"});
  options.slots["run_schedule"] = use<Noted<RunScheduleCallback>>({&order, "run_schedule"});
  options.slots["early_exit"] = use<Noted<EarlyExitCallback>>({&order, "early_exit"});
  options.loggers = {use<Noted<SilentLogger>>({&order, "logger"})};
  options.callbacks = {use<Noted<Callback>>({&order, "A"}), use<Noted<Callback>>({&order, "B"})};
  Noted<Callback> first({&order, "global"});
  Noted<Callback> second({&order, "another"});
  const GlobalCallbackScope scope(first);
  const GlobalCallbackScope scope_of_another(second);
  const Trainer trainer(options, quiet_log());
  CHECK(order ==
        std::vector<std::string>{
            "early_exit", "A", "B", "logger", "run_schedule", "checkpoint", "global", "another"});
}

TEST_CASE(
    "T12, T11: a global callback gets hooks of every Trainer while its scope lives, no finalize") {
  const TempDir dir;
  std::vector<std::string> hooks;
  RecordingCallback::Options recording;
  recording.hooks = &hooks;
  RecordingCallback callback(recording);
  GlobalCallbackScope scope(callback);
  Trainer first(tiny_options(dir / "a"), quiet_log());
  const std::vector<std::string> construction = {
      "pre_setup", "on_model_init", "setup", "post_setup"};
  CHECK(hooks == construction);
  hooks.clear();
  {
    Trainer second(tiny_options(dir / "b"), quiet_log());
    CHECK(hooks == construction);
    for (Trainer* trainer : {&first, &second}) {
      hooks.clear();
      trainer->validate(tiny_loader("val"));
      CHECK(hooks.front() == "on_enter_validate");
      CHECK(hooks.back() == "on_validate_end");
    }
    hooks.clear();
  }
  CHECK(hooks.empty());  // of the second one's end
  scope.remove();
  first.validate(tiny_loader("val"));
  const Trainer later(tiny_options(dir / "c"), quiet_log());
  CHECK(hooks.empty());
}

TEST_CASE("T18: a hook of a user's own must be there, unless it was allowed to be missing") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<Custom>()};
  Trainer trainer(options, quiet_log());
  int count = 0;
  HookArgs args{{"count", &count}};
  CHECK_THROWS_AS(trainer.call("on_level_up", args), UsageError);
  trainer.allow_hook("on_level_up");
  trainer.call("on_level_up", args);
  CHECK(count == 1);
  trainer.disallow_hook("on_level_up");
  CHECK_THROWS_AS(trainer.call("on_level_up", args), UsageError);
}

TEST_CASE("T18: an error in a hook of a user's own names callback and hook, a global one's too") {
  const TempDir dir;
  Trainer trainer(tiny_options(dir / "run"), quiet_log());
  trainer.allow_hook("on_level_up");
  Failing callback;
  const GlobalCallbackScope scope(callback);
  HookArgs args;
  try {
    trainer.call("on_level_up", args);
    FAIL("no error");
  } catch (const HookError& error) {
    CHECK(std::string(error.what()).find("Failing.on_level_up") != std::string::npos);
    CHECK_THROWS_AS(std::rethrow_if_nested(error), std::runtime_error);
  }
}

TEST_CASE("T19: callback<T> finds the first one of a type, or nothing; a global one has no name") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<Plain>(),
                       use<KeepNCheckpoints>({3}).labelled("first"),
                       use<KeepNCheckpoints>({2}).labelled("second")};
  const Trainer trainer(options, quiet_log());
  const auto* const found = trainer.callback<KeepNCheckpoints>();
  REQUIRE(found != nullptr);
  CHECK(trainer.callbacks().name_of(*found) == "first");
  CHECK(trainer.callback<Custom>() == nullptr);
  CHECK(trainer.callback<CheckpointCallback>() == &trainer.slot<CheckpointCallback>());
  Plain global;
  CHECK_THROWS_AS(trainer.callbacks().name_of(global), UsageError);
  CHECK(trainer.callbacks<KeepNCheckpoints>().size() == 2);
  CHECK(trainer.callbacks<Plain>().size() == 1);
  const GlobalCallbackScope scope(global);
  CHECK(trainer.callbacks<Plain>().size() == 2);
  CHECK(trainer.callbacks<Plain>().back() == &global);
}

TEST_CASE(
    "T84: two Trainers of one second get artifact directories of their own; latest is the newer") {
  const TempDir dir;
  const Trainer first(tiny_options(dir / "run"), quiet_log());
  const Trainer second(tiny_options(dir / "run"), quiet_log());
  CHECK(first.state().artifact_dir != second.state().artifact_dir);
  const std::filesystem::path latest = dir / "run/logs/latest";
  CHECK(std::filesystem::read_symlink(latest).is_relative());  // T83
  CHECK(std::filesystem::equivalent(latest, second.state().artifact_dir));
}

TEST_CASE("T86: no seed warns; the same seed gives the same parameters") {
  const TempDir dir;
  std::vector<std::string> warnings;
  TrainerOptions unseeded = tiny_options(dir / "a");
  unseeded.seed = {};
  const Trainer any(unseeded, quiet_log(&warnings));
  CHECK(warnings.size() == 1);
  Trainer one(tiny_options(dir / "b"), quiet_log());
  Trainer two(tiny_options(dir / "c"), quiet_log());
  CHECK(first_difference(bits_of(one), bits_of(two)).empty());
}

TEST_CASE("T90, T63, T101: options out of range are errors that name the option") {
  const TempDir dir;
  const auto refuses = [&](const char* name, const std::function<void(TrainerOptions&)>& spoil) {
    TrainerOptions options = tiny_options(dir / "run");
    spoil(options);
    try {
      const Trainer trainer(options, quiet_log());
    } catch (const Error&) {
      return describe(std::current_exception()).find(name) != std::string::npos;
    }
    return false;
  };
  CHECK(refuses("max_gradient_norm", [](auto& o) { o.precision.max_gradient_norm = 0.0; }));
  CHECK(refuses("max_gradient_value", [](auto& o) { o.precision.max_gradient_value = -1.0; }));
  CHECK(refuses("exclude", [](auto& o) {
    o.precision.max_gradient_norm = 1.0;
    o.precision.max_gradient_value = 1.0;
  }));
  CHECK(refuses("dtype", [](auto& o) { o.precision.dtype = "fp8"; }));
  CHECK(refuses("max_steps", [](auto& o) { o.loop.max_steps = Time::kMost + 1; }));
  CHECK(refuses("steps_per_epoch", [](auto& o) {
    o.loop.num_epochs = 9000000000000000;
    o.loop.steps_per_epoch = 100000;
  }));
  for (const int64_t none : {int64_t{0}, int64_t{-2}}) {
    CAPTURE(none);
    CHECK(refuses("max_steps", [&](auto& o) { o.loop.max_steps = none; }));
    CHECK(refuses("num_steps", [&](auto& o) { o.loop.num_steps = none; }));
    CHECK(refuses("num_epochs", [&](auto& o) { o.loop.num_epochs = none; }));
    CHECK(refuses("steps_per_epoch", [&](auto& o) { o.loop.steps_per_epoch = none; }));
    CHECK(refuses("eval_steps", [&](auto& o) { o.loop.eval_steps = none; }));
    CHECK(refuses("grad_accum_steps", [&](auto& o) { o.loop.grad_accum_steps = none; }));
  }
  CHECK(refuses("eval_steps", [](auto& o) { o.loop.eval_steps = 1.5; }));
  CHECK(refuses("eval_steps", [](auto& o) { o.loop.eval_steps = "2ep"; }));
  CHECK(refuses("eval_frequency", [](auto& o) { o.loop.eval_frequency = -1; }));
  CHECK(refuses("eval_frequency", [](auto& o) { o.loop.eval_frequency = 1.5; }));
  CHECK(refuses("exclude", [](auto& o) {
    o.loop.num_steps = 2;
    o.loop.num_epochs = 2;
  }));
  CHECK(refuses("{step}", [](auto& o) { o.checkpoint.checkpoint_name = "last.pt"; }));
  CHECK(refuses("{loss}", [](auto& o) { o.checkpoint.checkpoint_name = "{step}_{loss}.pt"; }));
  CHECK(refuses("checkpoint.steps", [](auto& o) { o.checkpoint.steps = -1; }));
  CHECK(refuses("checkpoint.steps", [](auto& o) { o.checkpoint.steps = 2.5; }));
  CHECK(refuses("mode", [](auto& o) { o.backend.mode = "lazy"; }));
  CHECK(refuses("run_schedule", [](auto& o) { o.slots["run_schedule"] = use<TrainingLoop>(); }));
  CHECK(refuses("slot", [](auto& o) { o.slots["loops"] = use<TrainingLoop>(); }));
}

TEST_CASE("T30: a Trainer with a validation loop can validate but not fit") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.slots["loop"] = use<ValidationLoop>();
  Trainer trainer(options, quiet_log());
  CHECK(trainer.validate(tiny_loader("val")).number("val/loss"));
  CHECK_THROWS_AS(trainer.fit(tiny_loader("train")), UsageError);
}

TEST_SUITE_END();
