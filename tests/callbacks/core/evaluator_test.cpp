#include "callbacks/core/evaluator.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "callbacks/core/metrics_callback.h"
#include "core/error.h"
#include "metrics/accuracy.h"
#include "models/builtin/mlp.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("callbacks/core/evaluator");

namespace {

/// Of the loader "rare": the best two of three classes over one batch, in every second validation.
Evaluator::Options rare() {
  Accuracy::Options two;
  two.top_k = 2;
  Evaluator::Options options;
  options.loader = "rare";
  options.metrics = {use<Accuracy>(two)};
  options.eval_steps = int64_t{1};
  options.every_n_vals = 2;
  return options;
}

TrainerOptions options_of(const TempDir& dir, const std::string& mode) {
  TrainerOptions options = tiny_options(dir / "run");
  Mlp::Options mlp;
  mlp.sizes = {4, 3};
  mlp.input = "x";
  options.model = use<Mlp>(mlp);
  options.backend.mode = mode;
  options.loop.max_steps = 6;
  options.loop.eval_frequency = int64_t{2};
  options.callbacks = {use<Evaluator>(rare())};
  return options;
}

std::vector<MemoryLogger::Entry> trained(const std::string& mode) {
  const TempDir dir;
  TrainerOptions options = options_of(dir, mode);
  std::vector<MemoryLogger::Entry> entries;
  options.loggers = {use<MemoryLogger>({&entries})};
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"), {tiny_loader("val", 6, 2, 2), tiny_loader("rare", 6, 2, 3)});
  return entries;
}

std::vector<int64_t> updates_of(const std::vector<MemoryLogger::Entry>& entries,
                                const std::string& name) {
  std::vector<int64_t> updates;
  for (const auto& value : values_of(entries, name)) {
    updates.push_back(value.first);
  }
  return updates;
}

}  // namespace

TEST_CASE("a loader has metrics, length and interval of its own, traced as eager") {
  const auto eager = trained("eager");
  const auto traced = trained("traced");
  CHECK((updates_of(eager, "val/accuracy") == std::vector<int64_t>{2, 4, 6}));
  CHECK((updates_of(eager, "val/loss") == std::vector<int64_t>{2, 4, 6}));
  CHECK((updates_of(eager, "rare/top_2_accuracy") == std::vector<int64_t>{4, 6}));
  CHECK((updates_of(eager, "rare/loss") == std::vector<int64_t>{4, 6}));
  CHECK(updates_of(eager, "rare/accuracy").empty());
  CHECK(updates_of(eager, "val/top_2_accuracy").empty());
  for (const char* name : {"val/accuracy", "val/loss", "rare/top_2_accuracy", "rare/loss"}) {
    CAPTURE(std::string(name));
    CHECK((values_of(eager, name) == values_of(traced, name)));
  }
}

TEST_CASE("the length is that of one batch, and a validation by hand always runs") {
  const TempDir dir;
  Trainer trainer(options_of(dir, "eager"), quiet_log());
  const DataLoader whole = tiny_loader("rare", 6, 2, 3);
  const DataLoader first = tiny_loader("other", 2, 2, 3);
  const Metrics of_rare = trainer.validate(whole, LoadFrom::nothing());
  const Metrics of_first = trainer.validate(first, LoadFrom::nothing());
  CHECK(of_rare.number("rare/loss").value() == of_first.number("other/loss").value());
  CHECK(of_rare.number("rare/top_2_accuracy"));
}

TEST_CASE("which of its metrics' values are better is known") {
  const TempDir dir;
  TrainerOptions options = options_of(dir, "eager");
  Trainer trainer(options, quiet_log());
  const auto names = [&](const std::string& scope) {
    std::vector<std::string> found;
    for (const auto& entry : trainer.slot<MetricsCallback>().of_validation(scope)) {
      found.push_back(entry.name);
    }
    return found;
  };
  CHECK((names("rare") == std::vector<std::string>{"loss", "top_2_accuracy"}));
  CHECK((names("val") == std::vector<std::string>{"loss", "accuracy"}));
}

TEST_CASE("an unknown loader, a loader twice, and options out of range are errors") {
  const TempDir dir;
  TrainerOptions options = options_of(dir, "eager");
  {
    Trainer trainer(options, quiet_log());
    std::string message;
    try {
      trainer.fit(tiny_loader("train"), {tiny_loader("rate", 6, 2, 2)});
    } catch (const Error&) {
      message = describe(std::current_exception());
    }
    CHECK(message.find("\"rare\"") != std::string::npos);
    CHECK(message.find("rate") != std::string::npos);
  }
  options.callbacks.push_back(use<Evaluator>(rare()));
  try {
    const Trainer trainer(options, quiet_log());
    FAIL("two Evaluators of one loader were accepted");
  } catch (const Error&) {
    const std::string message = describe(std::current_exception());
    CHECK(message.find("two Evaluators have the loader \"rare\"") != std::string::npos);
  }
  const auto refuses = [](auto change) {
    Evaluator::Options changed = rare();
    change(changed);
    CHECK_THROWS_AS(Evaluator{changed}, UsageError);
  };
  refuses([](auto& o) { o.loader = ""; });
  refuses([](auto& o) { o.every_n_vals = 0; });
  refuses([](auto& o) { o.eval_steps = 1.5; });
  refuses([](auto& o) { o.eval_steps = int64_t{0}; });
}

TEST_SUITE_END();
