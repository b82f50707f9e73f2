#include <doctest/doctest.h>
#include <torch/types.h>

#include "tracing/captured_steps.h"
#include "tracing/instruction_count.h"
#include "tracing/passes/passes.h"

TEST_SUITE_BEGIN("tracing/passes/dead_code");

using namespace rondo;
using namespace rondo::test;

TEST_CASE("dead code goes; writes, random draws and what they need stay") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor& state) {
    x.sin().cos();           // dead
    torch::rand({3}).exp();  // the draw stays, exp goes
    const at::Tensor t = x.clone();
    t.select(0, 0).mul_(2);  // written, and read below
    state.add_(x.mean(0));   // outlives the step
    x.clone().add_(1);       // a write that nothing sees
    return t.sum();
  });
  const StepProgram passed = remove_dead_code(recorded.program);
  CHECK(count(passed, "aten::sin") == 0);
  CHECK(count(passed, "aten::cos") == 0);
  CHECK(count(passed, "aten::exp") == 0);
  CHECK(count(passed, "aten::rand") == 1);
  CHECK(count(passed, "aten::mul_") == 1);
  CHECK(count(passed, "aten::clone") == 1);
  CHECK(count(passed, "aten::add_") == 1);
  recorded.check_same(passed);
}

TEST_CASE("a batch norm whose result nothing uses still moves its statistics") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor& state) {
    training_batch_norm(x, state, torch::ones({6}));
    return x.sum();
  });
  const StepProgram passed = remove_dead_code(recorded.program);
  CHECK(count(passed, "aten::native_batch_norm") == 1);
  recorded.check_same(passed);
}

TEST_SUITE_END();
