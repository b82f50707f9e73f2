#include <doctest/doctest.h>
#include <torch/types.h>

#include "tracing/captured_steps.h"
#include "tracing/instruction_count.h"
#include "tracing/passes/passes.h"

TEST_SUITE_BEGIN("tracing/passes/gradients_of_parts");

using namespace rondo;
using namespace rondo::test;

TEST_CASE("gradients of parts of a tensor are written at once, -0 and repeated parts as before") {
  const auto part = [](const at::Tensor& gradient, int64_t index) {
    return at::select_backward(gradient, {8, 3, 6}, 1, index);
  };
  CapturedSteps recorded([&](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor zeros = -torch::relu(x);  // some of them -0
    const at::Tensor once = part(zeros, 2) + part(x.sin(), 0) + part(x.cos(), -2);
    const at::Tensor twice = part(zeros, 1) + part(-zeros, 1);
    const at::Tensor seen = part(x.exp(), 0);
    const at::Tensor more = seen + part(x.tanh(), 1);
    const at::Tensor slices = at::slice_backward(x.narrow(1, 0, 2), {8, 6}, 1, 1, 3, 1) +
                              at::slice_backward(zeros.narrow(1, 0, 2), {8, 6}, -1, -2, 1 << 30, 1);
    // Starts before the beginning, where the second part lies as well.
    const at::Tensor all = at::slice_backward(x, {8, 6}, 0, -20, 1 << 30, 1);
    const at::Tensor over_all = all + at::select_backward(x[0], {8, 6}, 0, 0);
    state.add_(twice.sum() + seen.sum());
    return torch::cat({once.flatten(), more.flatten(), slices.flatten(), over_all.flatten()});
  });
  const StepProgram passed = write_gradients_of_parts_once(recorded.program);
  CHECK(count(passed, "rondo::gradients_of_parts") == 2);
  CHECK(count(passed, "aten::select_backward") == 5);
  CHECK(count(passed, "aten::slice_backward") == 1);
  recorded.check_same(passed);
}

TEST_CASE("gradients that change before the sum is done are left where they are") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor&) {
    const at::Tensor gradient = x.clone();
    const at::Tensor first = at::select_backward(gradient, {8, 3, 6}, 1, 0);
    gradient.mul_(2);
    return first + at::select_backward(gradient, {8, 3, 6}, 1, 1);
  });
  const StepProgram passed = write_gradients_of_parts_once(recorded.program);
  CHECK(count(passed, "rondo::gradients_of_parts") == 0);
  recorded.check_same(passed);
}

TEST_CASE("gradients of parts that are added up in place") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor&) {
    const at::Tensor sum = at::select_backward(x, {8, 3, 6}, 1, 0);
    sum.add_(at::select_backward(x.sin(), {8, 3, 6}, 1, 2));
    sum.add_(at::select_backward(x.cos(), {8, 3, 6}, 1, 1));
    return sum;
  });
  const StepProgram passed = write_gradients_of_parts_once(recorded.program);
  CHECK(count(passed, "rondo::gradients_of_parts") == 1);
  CHECK(count(passed, "aten::add_") == 0);
  recorded.check_same(passed);
}

TEST_SUITE_END();
