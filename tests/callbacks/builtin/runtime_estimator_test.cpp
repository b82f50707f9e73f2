#include "callbacks/builtin/runtime_estimator.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/error.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("callbacks/builtin/runtime_estimator");

TEST_CASE("C80: nothing is estimated in the skipped batches, and nothing remains at the end") {
  const TempDir dir;
  std::vector<MemoryLogger::Entry> entries;
  MemoryLogger::Options memory;
  memory.entries = &entries;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<RuntimeEstimator>({3, "seconds"})};
  options.loggers = {use<MemoryLogger>(memory)};
  options.loop.max_steps = 8;
  options.logging.log_steps = 1;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"), {tiny_loader("val")});
  const auto remaining = values_of(entries, "time/remaining_estimate");
  REQUIRE(remaining.size() == 5);
  CHECK(remaining.front().first == 4);
  CHECK(remaining.front().second > 0.0);
  CHECK(remaining.back().second == doctest::Approx(0.0));
}

TEST_CASE("C80: what remains is training at the speed so far") {
  RemainingTime time;
  CHECK(!time.seconds());
  time.train(0.1, 50.0);  // where measuring begins
  CHECK(!time.seconds());
  time.train(0.2, 60.0);
  CHECK(*time.seconds() == doctest::Approx(80.0));
  time.train(0.6, 140.0);
  CHECK(*time.seconds() == doctest::Approx(72.0));
}

TEST_CASE("C80: and the validations that are still to come, the first of each left out") {
  RemainingTime time;
  time.train(0.0, 0.0);
  time.train(0.25, 25.0);
  time.validation("val", 9.0);
  CHECK(*time.seconds() == doctest::Approx(75.0 + 3 * 9.0));  // the only one that is known
  time.train(0.5, 50.0);
  time.validation("val", 2.0);
  CHECK(*time.seconds() == doctest::Approx(50.0 + 2 * 2.0));
  time.validation("test", 5.0);
  CHECK(*time.seconds() == doctest::Approx(50.0 + 2 * 2.0 + 5.0));
  time.train(1.0, 100.0);
  time.validation("val", 2.0);
  time.validation("test", 5.0);
  CHECK(*time.seconds() == doctest::Approx(0.0));
}

TEST_CASE("C80: options out of range are refused") {
  CHECK_THROWS_AS(RuntimeEstimator({-1}), UsageError);
  CHECK_THROWS_AS(RuntimeEstimator({1, "years"}), UsageError);
}

TEST_SUITE_END();
