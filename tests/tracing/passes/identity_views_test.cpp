#include <doctest/doctest.h>
#include <torch/types.h>

#include "tracing/captured_steps.h"
#include "tracing/instruction_count.h"
#include "tracing/passes/passes.h"

TEST_SUITE_BEGIN("tracing/passes/identity_views");

using namespace rondo;
using namespace rondo::test;

TEST_CASE("views of the whole of a tensor in its own shape go") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor same = x.detach().t().t().alias();
    const at::Tensor wide = state.expand({6}).unsqueeze(0);
    return (same * wide).sum();
  });
  const StepProgram passed = remove_identity_views(recorded.program);
  CHECK(count(passed, "aten::detach") == 0);
  CHECK(count(passed, "aten::alias") == 0);
  CHECK(count(passed, "aten::expand") == 0);
  CHECK(count(passed, "aten::t") == 1);
  CHECK(count(passed, "aten::unsqueeze") == 1);
  recorded.check_same(passed);
}

TEST_SUITE_END();
