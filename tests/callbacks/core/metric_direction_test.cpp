#include "callbacks/core/metric_direction.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "callbacks/builtin/keep_best_checkpoints.h"
#include "callbacks/core/validation_callback.h"
#include "core/error.h"
#include "metrics/accuracy.h"
#include "metrics/token_loss.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("callbacks/core/metric_direction");

namespace {

/// Which values of a metric are better in a fit with loaders of these labels: "lower", "higher", or
/// the error.
std::string direction_of(const std::string& metric,
                         const std::vector<std::string>& labels,
                         const std::vector<Factory<Callback>>& callbacks = {}) {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");  // its model measures accuracy
  options.callbacks = callbacks;
  Trainer trainer(options, quiet_log());
  Loaders loaders;
  for (const std::string& label : labels) {
    loaders.push_back(tiny_loader(label));
  }
  MetricDirection direction("X", metric, "auto");
  try {
    direction.resolve(trainer, loaders);
  } catch (const UsageError& error) {
    return error.what();
  }
  return direction.is_better(0.0, 1.0) ? "lower" : "higher";
}

struct Probe final : ValidationCallback {
  Probe() : ValidationCallback("probe") {}

  void validate(Trainer&) override {}
};

}  // namespace

TEST_CASE("C77: the metric says which values are better, whatever the loader is called") {
  for (const std::string label : {"val", "past_errors", "lossless", "loss", "a/b"}) {
    CAPTURE(label);
    CHECK(direction_of(label + "/accuracy", {label}) == "higher");
    CHECK(direction_of(label + "/loss", {label}) == "lower");
    CHECK(direction_of(label + "/loss/kl", {label}) == "lower");
  }
  CHECK(direction_of("validate_0/accuracy", {""}) == "higher");
  CHECK(direction_of("loss", {"val"}) == "lower");
  CHECK(direction_of("loss/kl", {"val"}) == "lower");
  CHECK(direction_of("probe/accuracy", {"val"}, {use<Probe>()}) == "higher");
  CHECK(direction_of("probe/inner/accuracy", {"val"}, {use<Probe>()}) == "higher");
  CHECK(direction_of("val/accuracy", {}) == "higher");  // of a fit that validates nothing
}

TEST_CASE("a metric of training says it, too") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.train_metrics = {use<Accuracy>({})};
  Trainer trainer(options, quiet_log());
  MetricDirection direction("X", "accuracy", "auto");
  direction.resolve(trainer, {});
  CHECK(direction.is_better(1.0, 0.0));
}

TEST_CASE("a name that no metric answers for is an error that names it and the known ones") {
  for (const std::string metric :
       {"val/accuracies", "vall/accuracy", "accuracy", "lossy", "val/my_loss", "error", "lr"}) {
    CAPTURE(metric);
    const std::string error = direction_of(metric, {"val", "test"});
    CHECK(error.find("\"" + metric + "\"") != std::string::npos);
    for (const char* known : {"direction", "val/accuracy", "val/loss", "test/accuracy", "loss"}) {
      CHECK(error.find(known) != std::string::npos);
    }
  }
}

TEST_CASE("a direction that is given is taken, and others are refused") {
  const TempDir dir;
  Trainer trainer(tiny_options(dir / "run"), quiet_log());
  MetricDirection direction("X", "anything", "max");
  direction.resolve(trainer, {tiny_loader("val")});
  CHECK(direction.is_better(1.0, 0.0));
  CHECK(direction.subject().find("anything") == 0);
  CHECK_THROWS_AS(MetricDirection("X", "loss", "up"), UsageError);
  CHECK_THROWS_AS(MetricDirection("X", "", "min"), UsageError);
}

TEST_CASE("what a state is about is known before a checkpoint is loaded") {
  const TempDir dir;
  Trainer trainer(tiny_options(dir / "run"), quiet_log());
  MetricDirection before("X", "val/accuracy", "auto");
  before.guess(trainer);
  MetricDirection after("X", "val/accuracy", "auto");
  after.resolve(trainer, {tiny_loader("val")});
  CHECK(before.subject() == after.subject());
  CHECK(after.subject() == MetricDirection("X", "val/accuracy", "max").subject());
  CHECK(after.subject() != MetricDirection("X", "val/accuracy", "min").subject());
  CHECK(after.subject() != MetricDirection("X", "test/accuracy", "max").subject());
}

TEST_CASE("the error comes before the first batch, and the best accuracy is kept by default") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 10;
  options.loop.eval_frequency = 2;
  options.checkpoint.steps = 2;
  options.callbacks = {use<KeepBestCheckpoints>({"val/score"})};
  Trainer unknown(options, quiet_log());
  CHECK_THROWS_AS(unknown.fit(tiny_loader("train"), {tiny_loader("val")}), HookError);
  CHECK(unknown.state().global_step() == 0);
  CHECK(Accuracy({}).better() == Better::Higher);
  CHECK(Perplexity({}).better() == Better::Lower);
}

TEST_SUITE_END();
