#include <doctest/doctest.h>
#include <torch/types.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

using Entries = std::vector<MemoryLogger::Entry>;

/// The callback of the README: the joint norm of the gradients.
struct GradNorm final : Callback {
  void on_before_optimizer_step(Trainer& trainer, Model&, Optimizer& optimizer) override {
    std::vector<at::Tensor> norms;
    for (const at::Tensor& grad : optimizer.grads()) {
      norms.push_back(grad.norm());
    }
    trainer.log_metrics({{"grad_norm", at::stack(norms).norm()}});
  }
};

struct Scoped final : Callback {
  void on_after_forward(Trainer& trainer, Model&, Outputs& outputs, const Batch&) override {
    const NameScope scope = trainer.name_scope("inner");
    trainer.log_metrics({{"value", outputs["loss"].detach()}});
  }
};

TrainerOptions logged_options(const TempDir& dir, Entries& entries, const std::string& mode) {
  TrainerOptions options = tiny_options(dir / mode.c_str());
  MemoryLogger::Options memory;
  memory.entries = &entries;
  options.loggers = {use<MemoryLogger>(memory)};
  options.backend.mode = mode;
  options.loop.max_steps = 7;
  return options;
}

Entries trained_with(const Factory<Callback>& callback,
                     const std::string& mode,
                     int64_t log_steps = 1) {
  const TempDir dir;
  Entries entries;
  TrainerOptions options = logged_options(dir, entries, mode);
  options.callbacks = {callback};
  options.logging.log_steps = log_steps;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  return entries;
}

}  // namespace

TEST_SUITE_BEGIN("trainer/metric_log");

TEST_CASE(
    "T24: what a step logs reaches loggers after it, with the incremented update, under both "
    "backends") {
  const auto eager = values_of(trained_with(use<GradNorm>(), "eager"), "grad_norm");
  const auto traced = values_of(trained_with(use<GradNorm>(), "traced"), "grad_norm");
  REQUIRE(eager.size() == 7);
  CHECK(eager.front().first == 1);
  CHECK(eager.back().first == 7);
  CHECK(std::isfinite(eager.back().second));
  CHECK(eager == traced);
}

TEST_CASE("T23: off log steps nothing reaches a logger, under both backends") {
  for (const char* mode : {"eager", "traced"}) {
    const auto values = values_of(trained_with(use<GradNorm>(), mode, 3), "grad_norm");
    REQUIRE(values.size() == 3);
    CHECK(values[0].first == 3);
    CHECK(values[1].first == 6);
    CHECK(values[2].first == 7);
  }
}

TEST_CASE("a scope that is open inside the step is part of the name") {
  for (const char* mode : {"eager", "traced"}) {
    CHECK(values_of(trained_with(use<Scoped>(), mode), "inner/value").size() == 7);
  }
}

TEST_CASE("T25: without loggers nothing fails, and a warning says so once") {
  const TempDir dir;
  std::vector<std::string> warnings;
  Trainer silent(tiny_options(dir / "a"), quiet_log(&warnings));
  CHECK(warnings.empty());
  silent.log_metrics({{"x", 1.0}});
  silent.log_metrics({{"x", 2.0}});
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("no logger") != std::string::npos);
}

TEST_CASE("T28: an explicit step overrides the count") {
  const TempDir dir;
  Entries entries;
  Trainer trainer(logged_options(dir, entries, "eager"), quiet_log());
  LogOptions options;
  options.step = 42;
  trainer.log_metrics({{"x", 1.0}}, options);
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].update == 42);
}

TEST_CASE("T26, T27: loggers are chosen by name; a name that nobody has warns") {
  const TempDir dir;
  Entries entries;
  Entries others;
  std::vector<std::string> warnings;
  TrainerOptions run = logged_options(dir, entries, "eager");
  MemoryLogger::Options other;
  other.entries = &others;
  run.loggers.push_back(use<MemoryLogger>(other).labelled("other"));
  Trainer trainer(run, quiet_log(&warnings));
  trainer.log_metrics({{"both", 1.0}});
  LogOptions options;
  options.loggers = {"other"};
  trainer.log_metrics({{"named", 2.0}}, options);
  REQUIRE(entries.size() == 1);
  REQUIRE(others.size() == 2);
  CHECK(entries[0].name == "both");
  CHECK(others[1].name == "named");
  CHECK(warnings.empty());
  options.loggers = {"MemoryLoger"};
  trainer.log_metrics({{"x", 1.0}}, options);
  CHECK(entries.size() == 1);
  CHECK(others.size() == 2);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("\"MemoryLoger\"") != std::string::npos);
}

TEST_CASE("T27: a logger that left the destinations gets only what names it") {
  const TempDir dir;
  Entries entries;
  Entries others;
  TrainerOptions run = logged_options(dir, entries, "eager");
  MemoryLogger::Options other;
  other.entries = &others;
  run.loggers.push_back(use<MemoryLogger>(other).labelled("other"));
  Trainer trainer(run, quiet_log());
  trainer.remove_logger_destination("other");
  trainer.log_metrics({{"all", 1.0}});
  LogOptions options;
  options.loggers = {"other"};
  trainer.log_metrics({{"named", 2.0}}, options);
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].name == "all");
  REQUIRE(others.size() == 1);
  CHECK(others[0].name == "named");
}

/// Queues a closure that throws in its third run, within the step or after it.
struct Thrower final : Callback {
  struct Options {
    bool is_in_step = false;
    int* runs = nullptr;
  };

  explicit Thrower(const Options& o) : options(o) {}

  void on_after_forward(Trainer& trainer, Model&, Outputs& outputs, const Batch&) override {
    if (options.is_in_step) {
      trainer.defer({outputs["loss"].detach()}, work());
    }
  }

  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) override {
    if (!options.is_in_step) {
      trainer.defer({}, work());
    }
  }

  HostFunction work() {
    return [runs = options.runs](const std::vector<at::Tensor>&) {
      if (++*runs == 3) {
        throw std::out_of_range("planted");
      }
    };
  }

  Options options;
};

TEST_CASE("T17: what a closure throws comes out as it is, from a replay and from after a step") {
  for (const char* mode : {"eager", "traced"}) {
    for (const bool is_in_step : {false, true}) {
      CAPTURE(std::string(mode));
      CAPTURE(is_in_step);
      const TempDir dir;
      int runs = 0;
      Thrower::Options thrower;
      thrower.is_in_step = is_in_step;
      thrower.runs = &runs;
      TrainerOptions options = tiny_options(dir / "run");
      options.backend.mode = mode;
      options.callbacks = {use<Thrower>(thrower)};
      Trainer trainer(options, quiet_log());
      CHECK_THROWS_WITH_AS(trainer.fit(tiny_loader("train")), "planted", std::out_of_range);
      CHECK(runs == 3);
      CHECK(trainer.state().global_step() == 3);  // the step was made; nothing follows
    }
  }
}

TEST_CASE("T68, T69: closures run in queue order, before the next batch, and see the new count") {
  struct Queue final : Callback {
    struct Options {
      std::vector<std::string>* events = nullptr;
    };

    explicit Queue(const Options& o) : events(o.events) {}

    void on_train_batch_start(Trainer&, Model&, const Batch&, int64_t) override {
      events->push_back("batch");
    }

    void on_train_batch_end(
        Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) override {
      for (const char* name : {"first", "second"}) {
        trainer.defer({}, [this, name, &trainer](const std::vector<at::Tensor>&) {
          events->push_back(name + std::to_string(trainer.state().global_step()));
        });
      }
    }

    void on_train_end(Trainer&, Model&, Loop&, int64_t) override { events->push_back("end"); }

    std::vector<std::string>* events;
  };

  const TempDir dir;
  std::vector<std::string> events;
  TrainerOptions options = tiny_options(dir / "run");
  Queue::Options queue;
  queue.events = &events;
  options.callbacks = {use<Queue>(queue)};
  options.loop.max_steps = 2;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  CHECK(events == std::vector<std::string>{
                      "batch", "first1", "second1", "batch", "first2", "second2", "end"});
}

TEST_CASE("T68: what the last hooks of a stage defer runs before the stage is over") {
  struct AtTheEnd final : Callback {
    struct Options {
      std::vector<std::string>* events = nullptr;
    };

    explicit AtTheEnd(const Options& o) : events(o.events) {}

    void note(Trainer& trainer, const char* name) const {
      trainer.defer({}, [this, name](const std::vector<at::Tensor>&) { events->push_back(name); });
    }

    void on_train_end(Trainer& trainer, Model&, Loop&, int64_t) override { note(trainer, "train"); }

    void on_validate_end(Trainer& trainer, Model&, Loop&) override { note(trainer, "validate"); }

    void on_fit_end(Trainer&, Loop&) override { events->push_back("fit"); }

    std::vector<std::string>* events;
  };

  const TempDir dir;
  std::vector<std::string> events;
  TrainerOptions options = tiny_options(dir / "run");
  AtTheEnd::Options at_the_end;
  at_the_end.events = &events;
  options.callbacks = {use<AtTheEnd>(at_the_end)};
  options.loop.max_steps = 2;
  options.loop.eval_frequency = 2;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"), {tiny_loader("val")});
  CHECK(events == std::vector<std::string>{"train", "validate", "fit"});
}

TEST_CASE("the items of a temporary can be gone through") {
  const TempDir dir;
  Trainer trainer(tiny_options(dir / "run"), quiet_log());
  std::vector<std::string> names;
  for (const auto& item : trainer.validate(tiny_loader("val")).items()) {
    names.push_back(item.first);
  }
  CHECK(names == std::vector<std::string>{"val/loss", "val/accuracy"});
}

TEST_SUITE_END();
