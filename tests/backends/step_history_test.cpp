#include "backends/checks/step_history.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>

#include "core/error.h"
#include "support/step_probe.h"

TEST_SUITE_BEGIN("backends/step_history");

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

TEST_SUITE_END();
