#include <doctest/doctest.h>
#include <torch/types.h>

#include "tracing/captured_steps.h"
#include "tracing/instruction_count.h"
#include "tracing/passes/passes.h"

TEST_SUITE_BEGIN("tracing/passes/needless_copies");

using namespace rondo;
using namespace rondo::test;

TEST_CASE("copies go unless someone writes into the copy or the source, or gets the copy") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor needless = x.clone().narrow(0, 1, 2).exp();
    at::Tensor written = x.clone();
    written.mul_(2);
    const at::Tensor kept = state.clone();
    state.add_(1);
    const at::Tensor out = written.sum() + (kept * state).sum() + needless.sum();
    return out.clone();
  });
  const StepProgram passed = remove_needless_copies(recorded.program);
  CHECK(count(recorded.program, "aten::clone") == 4);
  CHECK(count(passed, "aten::clone") == 3);
  recorded.check_same(passed);
}

TEST_CASE("copies that `to` makes go alike, and one that has nothing to do makes none") {
  constexpr bool kNow = false;  // non_blocking
  constexpr bool kCopies = true;
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor same = x.to(at::kFloat).to(x.options());  // x itself
    const at::Tensor needless = same.to(at::kFloat, kNow, kCopies).exp();
    const at::Tensor written = x.to(at::kFloat, kNow, kCopies);
    written.mul_(2);
    const at::Tensor kept = state.to(at::kFloat, kNow, kCopies);
    state.add_(1);
    const at::Tensor wider = x.to(at::kDouble).sum();
    return needless.sum() + written.sum() + (kept * state).sum() + wider;
  });
  const StepProgram passed = remove_needless_copies(recorded.program);
  CHECK(count(recorded.program, "aten::_to_copy") == 4);
  CHECK(count(recorded.program, "aten::to") == 0);
  CHECK(count(passed, "aten::_to_copy") == 3);
  recorded.check_same(passed);
}

TEST_SUITE_END();
