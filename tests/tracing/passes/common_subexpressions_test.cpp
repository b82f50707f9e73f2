#include <doctest/doctest.h>
#include <torch/types.h>

#include "tracing/captured_steps.h"
#include "tracing/instruction_count.h"
#include "tracing/passes/passes.h"

TEST_SUITE_BEGIN("tracing/passes/common_subexpressions");

using namespace rondo;
using namespace rondo::test;

TEST_CASE("equal computations are done once") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor&) {
    return (x.t().mm(x.sin()) + x.t().mm(x.sin())).sum() + x.sum(0).sum() + x.sum(1).sum();
  });
  const StepProgram passed = merge_common_subexpressions(recorded.program);
  CHECK(count(recorded.program, "aten::sin") == 2);
  CHECK(count(passed, "aten::sin") == 1);
  CHECK(count(passed, "aten::mm") == 1);
  CHECK(count(passed, "aten::sum") == count(recorded.program, "aten::sum"));
  recorded.check_same(passed);
}

TEST_CASE("of equal results that are handed out, each who gets one gets its own") {
  CapturedSteps recorded(
      [](const at::Tensor& x, const at::Tensor&) { return x.sum(0) + x.exp().sum(); },
      [](BodyRequests& requests, const at::Tensor& y) {
        const HostFunction nothing;
        const at::Tensor kept = y.sin() + 1;  // of the step alone
        for (int i = 0; i < 2; ++i) {
          requests.defer({{y.clone(), y.sin(), y.view({6, 1})}, nothing, {}});
        }
        requests.defer({{kept}, nothing, {}});
      });
  const StepProgram passed = merge_common_subexpressions(recorded.program);
  CHECK(count(recorded.program, "aten::clone") == 2);
  CHECK(count(passed, "aten::clone") == 2);
  CHECK(count(recorded.program, "aten::sin") == 3);
  CHECK(count(passed, "aten::sin") == 2);
  CHECK(count(recorded.program, "aten::view") == 2);
  CHECK(count(passed, "aten::view") == 1);
  recorded.check_same(passed);
}

TEST_CASE("what writes, draws, or is written in between is not merged") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor a = torch::rand({6}) + torch::rand({6});
    const at::Tensor before = state.exp();
    state.add_(1);
    const at::Tensor after = state.exp();
    at::Tensor ones = torch::ones({6});
    ones.add_(a);
    const at::Tensor other = torch::ones({6});
    const at::Tensor norms =
        training_batch_norm(x, state, ones) + training_batch_norm(x, state, ones);
    return norms.sum() + (before + after + other).sum();
  });
  const StepProgram passed = merge_common_subexpressions(recorded.program);
  CHECK(count(passed, "aten::rand") == 2);
  CHECK(count(passed, "aten::exp") == 2);
  CHECK(count(passed, "aten::ones") == 2);
  CHECK(count(passed, "aten::native_batch_norm") == 2);
  recorded.check_same(passed);
}

TEST_SUITE_END();
