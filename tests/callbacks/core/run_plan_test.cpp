#include "callbacks/core/run_plan.h"

#include <doctest/doctest.h>

#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"

using namespace rondo;

namespace {

/// Lengths of the stages of a run that begins at update `start`.
std::vector<int64_t> stages(const LoopOptions& options,
                            int64_t start = 0,
                            int64_t updates_per_epoch = 100) {
  Timestamp time;
  time.update = start;
  const RunPlan plan(options, time, updates_per_epoch);
  std::vector<int64_t> lengths;
  int64_t length = 0;
  while (!plan.is_over(time)) {
    const Timestamp before = time;
    time.advance_batch({});
    if (time.update % updates_per_epoch == 0) {
      time.advance_epoch();
    }
    ++length;
    if (plan.ends_stage(before, time)) {
      lengths.push_back(length);
      length = 0;
    }
  }
  return lengths;
}

LoopOptions steps(int64_t max_steps, Time eval_frequency) {
  LoopOptions options;
  options.max_steps = max_steps;
  options.eval_frequency = eval_frequency;
  return options;
}

using Lengths = std::vector<int64_t>;

}  // namespace

TEST_SUITE_BEGIN("callbacks/core/run_plan");

TEST_CASE("T58: a whole number counts updates, a fraction is of the run") {
  CHECK(stages(steps(4, 1)) == Lengths{1, 1, 1, 1});
  CHECK(stages(steps(4, 1.0)) == Lengths{4});
  CHECK(stages(steps(4, 0.5)) == Lengths{2, 2});
  CHECK(stages(steps(4, 3)) == Lengths{3, 1});
}

TEST_CASE("T59: a fraction is rounded up") {
  CHECK(stages(steps(10, 0.3)) == Lengths{3, 3, 3, 1});
  CHECK(stages(steps(10, 0.25)) == Lengths{3, 3, 3, 1});
}

TEST_CASE("T64: max_steps is the total of the run, num_steps that many more") {
  CHECK(stages(steps(10, 1.0), 6) == Lengths{4});
  LoopOptions more;
  more.num_steps = 10;
  CHECK(stages(more, 6) == Lengths{10});
}

TEST_CASE("a run that is longer than what can be counted ends at the last count") {
  LoopOptions epochs;
  epochs.num_epochs = 9000000000000000;
  CHECK(RunPlan(epochs, {}, 100000).length().total == Time(Time::kMost));
  epochs.steps_per_epoch = 100000;
  CHECK(RunPlan(epochs, {}, std::nullopt).length().total == Time(Time::kMost));
  LoopOptions more;
  more.num_steps = Time::kMost;
  Timestamp late;
  late.update = Time::kMost;
  CHECK_FALSE(RunPlan(more, late, std::nullopt).is_over(late));
}

TEST_CASE("a resumed run validates where the uninterrupted one does") {
  CHECK(stages(steps(10, 4), 0) == Lengths{4, 4, 2});
  CHECK(stages(steps(10, 4), 3) == Lengths{1, 4, 2});
  CHECK(stages(steps(10, 4), 8) == Lengths{2});
}

TEST_CASE("epochs and Time strings set length and cadence") {
  LoopOptions options;
  options.num_epochs = 3;
  options.eval_frequency = "1ep";
  CHECK(stages(options, 0, 4) == Lengths{4, 4, 4});
  options.max_duration = Time("5ba");
  CHECK(stages(options, 0, 4) == Lengths{4, 1});
}

TEST_CASE("T4: without a length a run is one epoch, validated at its end") {
  CHECK(stages({}, 0, 7) == Lengths{7});
}

TEST_CASE("C9: the elapsed share of a run, by the limit that is nearest") {
  Timestamp time;
  time.epoch = 3;
  time.update = 30;
  LoopOptions epochs;
  epochs.num_epochs = 4;
  CHECK(RunPlan(epochs, {}, 10).elapsed_share(time) == 0.75);
  CHECK(RunPlan(epochs, {}, std::nullopt).elapsed_share(time) == 0.75);
  epochs.max_steps = 60;
  CHECK(RunPlan(epochs, {}, 10).elapsed_share(time) == 0.75);
  epochs.max_steps = 30;
  CHECK(RunPlan(epochs, {}, 10).elapsed_share(time) == 1.0);
  time.token = 500;
  LoopOptions tokens;
  tokens.max_duration = Time("2000tok");
  CHECK(RunPlan(tokens, {}, 10).elapsed_share(time) == 0.25);
}

TEST_CASE("C32: validations every two epochs and at the end; with 0 never") {
  LoopOptions options;
  options.num_epochs = 5;
  options.eval_frequency = "2ep";
  CHECK(stages(options, 0, 4) == Lengths{8, 8, 4});
  options.eval_frequency = "0ep";
  CHECK(stages(options, 0, 4) == Lengths{20});
  CHECK_FALSE(RunPlan(options, {}, 4).validates());
}

TEST_CASE("a share of a run in samples is in samples") {
  LoopOptions options;
  options.max_duration = Time("1000sp");
  options.eval_frequency = 0.25;
  const RunPlan plan(options, {}, 10);
  CHECK(plan.length().total == Time("1000sp"));
  Timestamp before;
  before.sample = 240;
  Timestamp after;
  after.sample = 256;
  CHECK(plan.ends_stage(before, after));
  CHECK_FALSE(plan.ends_stage(after, after));
  CHECK(plan.loop_idx(after) == 1);
  CHECK_FALSE(plan.updates_of_stage(after));
  options.max_steps = 50;
  CHECK(RunPlan(options, {}, 10).length().total == Time(50));
}

TEST_CASE("what is left until the next validation, or until the end of the run, is known") {
  LoopOptions options;
  options.max_steps = 10;
  options.eval_frequency = 4;
  const RunPlan plan(options, {}, std::nullopt);
  Timestamp now;
  for (const auto& [update, left] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 4}, {3, 1}, {4, 4}, {7, 1}, {8, 2}, {9, 1}, {10, 0}}) {
    CAPTURE(update);
    now.update = update;
    CHECK(plan.updates_of_stage(now) == left);
  }
}

TEST_CASE("C37: a fraction of a run whose length is unknown is refused") {
  LoopOptions options;
  options.num_epochs = 2;
  options.eval_frequency = 0.5;
  CHECK_THROWS_AS(RunPlan(options, {}, std::nullopt), UsageError);
}

TEST_CASE("C18: a ratio scales every limit, rounded down; fractions follow") {
  LoopOptions options = steps(10, 0.5);
  options.scale_schedule_ratio = 0.5;
  CHECK(stages(options) == Lengths{3, 2});
  options = {};
  options.num_epochs = 4;
  options.eval_frequency = "1ep";
  options.scale_schedule_ratio = 0.5;
  CHECK(stages(options, 0, 10) == Lengths{10, 10});
  options = {};
  options.max_duration = "1000sp";
  options.scale_schedule_ratio = 0.25;
  CHECK(RunPlan(options, {}, 10).length().total == Time("250sp"));
}

TEST_CASE("C19: a ratio that leaves nothing of a limit is an error") {
  LoopOptions options = steps(3, 1.0);
  options.scale_schedule_ratio = 0.25;
  CHECK_THROWS_AS(RunPlan(options, {}, 10), UsageError);
}

TEST_SUITE_END();
