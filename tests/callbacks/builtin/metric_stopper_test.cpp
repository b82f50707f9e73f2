#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "callbacks/builtin/early_stopper.h"
#include "callbacks/builtin/threshold_stopper.h"
#include "core/error.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Logs "score" at the end of each validation: the value of the epoch that has ended.
struct Script final : Callback {
  struct Options {
    std::vector<double> values;
  };

  explicit Script(const Options& o) : options(o) {}

  void on_validate_end(Trainer& trainer, Model&, Loop&) override {
    const auto epoch = static_cast<size_t>(trainer.state().timestamp.epoch);
    trainer.log_metrics({{"score", options.values.at(epoch - 1)}});
  }

  Options options;
};

/// Trains at most eight epochs of 5 updates with a validation after each.
FitResult fit(const TempDir& dir, std::vector<double> scores, const Factory<Callback>& stopper) {
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<Script>({std::move(scores)}), stopper};
  options.loop.num_epochs = 8;
  options.loop.max_steps.reset();
  options.loop.eval_frequency = "1ep";
  options.checkpoint.steps = "4ep";
  Trainer trainer(options, quiet_log());
  return trainer.fit(tiny_loader("train"), {tiny_loader("val")});
}

EarlyStopper::Options on_score() {
  EarlyStopper::Options options;
  options.metric = "val/score";
  options.direction = "max";
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/metric_stopper");

TEST_CASE("C77: with a patience of one epoch the second one without improvement is the last") {
  const TempDir dir;
  const FitResult result = fit(dir, {1, 2, 2, 1.5, 9, 9, 9, 9}, use<EarlyStopper>(on_score()));
  CHECK(result.steps == 20);
  CHECK(result.stop_reason.find("EarlyStopper") != std::string::npos);
}

TEST_CASE("C77: an improvement must exceed min_delta, and lower is better for a loss") {
  const TempDir dir;
  EarlyStopper::Options options = on_score();
  options.min_delta = 1.0;
  CHECK(fit(dir, {1, 2, 1.5, 9, 9, 9, 9, 9}, use<EarlyStopper>(options)).steps == 15);

  const TempDir other;
  options.min_delta = 0.0;
  options.direction = "min";
  options.patience = "0ep";
  CHECK(fit(other, {3, 2, 1, 1, 0, 0, 0, 0}, use<EarlyStopper>(options)).steps == 20);

  const TempDir third;
  options.direction = "auto";
  options.metric = "val/loss";  // falls throughout
  CHECK(fit(third, {1, 1, 1, 1, 1, 1, 1, 1}, use<EarlyStopper>(options)).steps == 40);
}

TEST_CASE("C77: a metric of training is looked at after updates or epochs") {
  const TempDir dir;
  EarlyStopper::Options options;
  options.metric = "loss";
  options.direction = "max";  // the first one stays the best
  options.when = "update";
  options.patience = 3;
  TrainerOptions run = tiny_options(dir / "run");
  run.loop.max_steps = 30;
  run.logging.log_steps = 2;
  run.callbacks = {use<EarlyStopper>(options)};
  const auto never_validated = [&](const std::string& name) {
    run.model_dir = dir / name.c_str();
    Trainer trainer(run, quiet_log());
    return trainer.fit(tiny_loader("train", 2)).steps;  // one batch: its loss falls
  };
  CHECK(never_validated("update") == 6);  // seen first at 2, at 4, then at 6
  options.when = "epoch";
  run.logging.log_steps = 1;
  run.callbacks = {use<EarlyStopper>(options)};
  CHECK(never_validated("epoch") == 5);  // seen first at 1
}

TEST_CASE("C77: a run that was ended ends at once when it is resumed, unless patience has grown") {
  const TempDir dir;
  EarlyStopper::Options options = on_score();
  const std::vector<double> scores = {1, 2, 2, 1.5, 9, 9, 9, 9};
  CHECK(fit(dir, scores, use<EarlyStopper>(options)).steps == 20);
  CHECK(fit(dir, scores, use<EarlyStopper>(options)).steps_now == 0);
  options.patience = "3ep";
  CHECK(fit(dir, scores, use<EarlyStopper>(options)).steps == 40);
}

TEST_CASE("patience that is given in another unit for the resume begins again") {
  const TempDir dir;
  EarlyStopper::Options options = on_score();
  options.patience = "1ep";
  const std::vector<double> scores = {1, 2, 2, 1.5, 1, 1, 1, 1};
  CHECK(fit(dir, scores, use<EarlyStopper>(options)).steps == 20);
  options.patience = 12;  // updates; it was best in epoch 2, which is no update 2
  CHECK(fit(dir, scores, use<EarlyStopper>(options)).steps == 35);
}

TEST_CASE("patience is a time of any unit, and may be a share of the run") {
  const std::vector<double> scores = {1, 2, 2, 1.5, 9, 9, 9, 9};
  for (const Time& patience : {Time(9), Time(0.2), Time("18sp")}) {
    const TempDir dir;
    EarlyStopper::Options options = on_score();
    options.patience = patience;
    CHECK(fit(dir, scores, use<EarlyStopper>(options)).steps == 20);
  }
}

TEST_CASE("C77: a metric that nothing logs is an error which names it") {
  const TempDir dir;
  EarlyStopper::Options options = on_score();
  options.metric = "val/scor";
  try {
    fit(dir, {1, 2, 3, 4, 5, 6, 7, 8}, use<EarlyStopper>(options));
    FAIL("nothing was thrown");
  } catch (const HookError&) {
    const std::string text = describe(std::current_exception());
    CHECK(text.find("val/scor\"") != std::string::npos);
    CHECK(text.find("val/score") != std::string::npos);
  }
}

TEST_CASE("C77: options out of range are refused") {
  CHECK_THROWS_AS(EarlyStopper({}), UsageError);
  CHECK_THROWS_AS(EarlyStopper({"loss", "less"}), UsageError);
  CHECK_THROWS_AS(EarlyStopper({"loss", "min", "batch"}), UsageError);
  CHECK_THROWS_AS(EarlyStopper({"loss", "min", "epoch", -1}), UsageError);
  CHECK_THROWS_AS(EarlyStopper({"loss", "min", "epoch", 1, -0.1}), UsageError);
  CHECK_THROWS_AS(ThresholdStopper({}), UsageError);
}

TEST_CASE("C78: a run whose metric is better than the threshold ends") {
  const TempDir dir;
  ThresholdStopper::Options options;
  options.metric = "val/score";
  options.direction = "max";
  options.threshold = 2.0;
  const std::vector<double> scores = {1, 2, 2.5, 1, 1, 1, 1, 1};
  const FitResult result = fit(dir, scores, use<ThresholdStopper>(options));
  CHECK(result.steps == 15);
  CHECK(result.stop_reason.find("ThresholdStopper") != std::string::npos);
  CHECK(fit(dir, scores, use<ThresholdStopper>(options)).steps_now == 0);
}

TEST_CASE("a stopper on the loss of training goes on after a resume, before it is logged again") {
  const TempDir dir;
  EarlyStopper::Options options;
  options.metric = "loss";
  options.when = "epoch";
  options.patience = "100ep";
  TrainerOptions run = tiny_options(dir / "run");
  run.logging.log_steps = 4;
  run.checkpoint.steps = 9;
  run.callbacks = {use<EarlyStopper>(options)};
  const auto fit_to = [&](int64_t updates) {
    run.loop.max_steps = updates;
    return Trainer(run, quiet_log()).fit(tiny_loader("train"));
  };
  CHECK(fit_to(9).steps == 9);
  // An epoch ends at 10; the next log step is 12.
  const FitResult result = fit_to(12);
  CHECK(result.steps == 12);
  CHECK(result.steps_now == 3);
}

TEST_SUITE_END();
