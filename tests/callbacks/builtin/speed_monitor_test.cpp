#include "callbacks/builtin/speed_monitor.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/error.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

using Entries = std::vector<MemoryLogger::Entry>;

Entries monitored(const SpeedMonitor::Options& speed, int64_t updates, int64_t group) {
  const TempDir dir;
  Entries entries;
  MemoryLogger::Options memory;
  memory.entries = &entries;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<SpeedMonitor>(speed)};
  options.loggers = {use<MemoryLogger>(memory)};
  options.loop.max_steps = updates;
  options.loop.grad_accum_steps = group;
  options.logging.log_steps = 1;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"), {tiny_loader("val")});
  return entries;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/speed_monitor");

TEST_CASE("C76: speed is logged from the first full window on, the time spent from the first") {
  const Entries entries = monitored({4, "seconds"}, 8, 1);
  const auto batches = values_of(entries, "throughput/batches_per_sec");
  REQUIRE(batches.size() == 4);
  CHECK(batches.front().first == 5);
  const auto samples = values_of(entries, "throughput/samples_per_sec");
  REQUIRE(samples.size() == 4);
  CHECK(samples[0].second == doctest::Approx(2 * batches[0].second));  // two samples a batch
  CHECK(values_of(entries, "throughput/tokens_per_sec").empty());
  const auto train = values_of(entries, "time/train");
  REQUIRE(train.size() == 8);
  CHECK(train.front().first == 1);
  CHECK(train.front().second > 0.0);
  CHECK(train.back().second > train.front().second);
  const auto total = values_of(entries, "time/total");
  const auto validation = values_of(entries, "time/val");
  REQUIRE(total.size() == 8);
  CHECK(total.back().second == doctest::Approx(train.back().second + validation.back().second));
}

TEST_CASE("C76: batches of a group count for the window, and a group logs once") {
  const Entries entries = monitored({4, "seconds"}, 4, 2);
  CHECK(values_of(entries, "time/train").size() == 4);
  // Five batches an epoch are groups of 2, 2 and 1: the third update ends with the fifth batch.
  const auto batches = values_of(entries, "throughput/batches_per_sec");
  REQUIRE(batches.size() == 2);
  CHECK(batches.front().first == 3);
}

TEST_CASE("C76: the unit of time can be chosen among four") {
  const auto hours = values_of(monitored({4, "hours"}, 1, 1), "time/train");
  REQUIRE(hours.size() == 1);
  CHECK(hours[0].second < 1.0);
  CHECK_THROWS_AS(SpeedMonitor({4, "weeks"}), UsageError);
  CHECK_THROWS_AS(SpeedMonitor({0}), UsageError);
}

TEST_CASE("C76: the time spent on validations outlives the process") {
  const TempDir dir;
  Entries entries;
  MemoryLogger::Options memory;
  memory.entries = &entries;
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<SpeedMonitor>({1, "seconds"})};
  options.loop.max_steps = 2;
  options.loop.eval_frequency = 1;
  {
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"), {tiny_loader("val")});
    trainer.save_checkpoint();
  }
  options.loggers = {use<MemoryLogger>(memory)};
  options.logging.log_steps = 1;
  options.loop.max_steps = 3;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"), {tiny_loader("val")});
  const auto validation = values_of(entries, "time/val");
  REQUIRE(validation.size() == 1);
  CHECK(validation[0].second > 0.0);
}

TEST_SUITE_END();
