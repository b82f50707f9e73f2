#include "tracing/checks/step_history.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>

#include "core/error.h"
#include "support/step_probe.h"

TEST_SUITE_BEGIN("tracing/checks/step_history");

using namespace rondo;
using namespace rondo::test;

TEST_CASE("copies of the state take a 400th of the time, and come before memory runs out") {
  const SnapshotPace pace;
  using std::chrono::microseconds;
  CHECK_FALSE(pace.is_due(microseconds(399), microseconds(1), 10, 1000));
  CHECK(pace.is_due(microseconds(400), microseconds(1), 10, 1000));
  CHECK(pace.is_due(microseconds(5), microseconds(1), pace.most_steps, 1000));
  CHECK(pace.is_due(microseconds(5), microseconds(1), 10, pace.most_bytes));
}

TEST_CASE("a step that is kept costs no copy of its batch, and no memory once there is room") {
  const at::Tensor w = torch::rand({64, 64});
  StepHistory history([&] { return CapturedState{{"w", w}}; });
  const Batch batch = random_batch(0);
  const auto uses_before = batch["x"].use_count();
  history.begin_step(batch);
  history.end_step(nullptr);
  CHECK(history.snapshots() == 1);
  CHECK(batch["x"].use_count() == uses_before + 1);
  history.forget();
  CHECK(batch["x"].use_count() == uses_before);
}

TEST_CASE("state that went bad without a bad loss is found when it is copied next") {
  const at::Tensor w = torch::rand({8});
  const at::Tensor mask = torch::full({8}, -INFINITY);
  StepHistory history([&] { return CapturedState{{"w", w}, {"mask", mask}}; });
  const Batch batch = random_batch(0);
  const auto keep_many = [&] {
    for (int i = 0; i < 1100; ++i) {
      history.begin_step(batch);
      history.end_step(nullptr);
    }
  };
  keep_many();
  CHECK(history.snapshots() >= 2);
  w[3] = NAN;
  try {
    keep_many();
    FAIL("nothing was thrown");
  } catch (const NonFiniteLossError& error) {
    CHECK(std::string(error.what()).find("\"w\"") != std::string::npos);
  }
}

TEST_CASE(
    "infinities that others put into the state are their own business; a look at the end tells "
    "them") {
  const at::Tensor mask = torch::zeros({8});
  StepHistory history([&] { return CapturedState{{"mask", mask}}; });
  const auto run_step = [&] {
    history.begin_step(random_batch(0));
    history.end_step(nullptr);
  };
  run_step();
  mask[3] = -INFINITY;
  CHECK_NOTHROW(history.forget());
  run_step();
  CHECK_NOTHROW(history.check());  // they are known by now
  CHECK(history.explain().empty());
  run_step();
  mask[4] = -INFINITY;
  CHECK_THROWS_AS(history.check(), NonFiniteLossError);
}

TEST_CASE("with nothing kept, the state is not looked at") {
  int looks = 0;
  StepHistory history([&] {
    ++looks;
    return CapturedState{};
  });
  history.forget();
  history.check();
  CHECK(looks == 0);
  history.begin_step(random_batch(0));
  history.end_step(nullptr);
  history.forget();
  CHECK(looks == 2);
  history.forget();  // once for all steps of a validation
  CHECK(looks == 2);
}

TEST_SUITE_END();
