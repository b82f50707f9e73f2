#include <doctest/doctest.h>
#include <torch/autograd.h>
#include <torch/library.h>
#include <torch/types.h>

#include <algorithm>
#include <vector>

#include "tracing/captured_steps.h"
#include "tracing/instruction_count.h"
#include "tracing/passes/passes.h"

TEST_SUITE_BEGIN("tracing/passes/fold_constants");

using namespace rondo;
using namespace rondo::test;

// An operator of somebody else's: it may look at more than its argument.
TORCH_LIBRARY(rondo_passes_test, library) {
  library.def("scale(Tensor like) -> Tensor");
}

TORCH_LIBRARY_IMPL(rondo_passes_test, CPU, library) {
  library.impl("scale", [](const at::Tensor& like) { return at::full_like(like, 3.0); });
}

TEST_CASE("what follows from shapes alone is computed once; what is written into is not") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor ones = torch::ones_like(x);
    const at::Tensor written = torch::zeros({6});
    written.add_(1);
    state.add_(written);
    return (x + ones + torch::arange(6)).sum();
  });
  const StepProgram passed = fold_constants(recorded.program);
  CHECK(count(passed, "aten::ones_like") == 0);
  CHECK(count(passed, "aten::arange") == 0);
  CHECK(count(passed, "aten::zeros") == count(recorded.program, "aten::zeros"));
  recorded.check_same(passed);
}

TEST_CASE("what follows from constants is computed once; random numbers and changed ones are not") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor third = torch::ones({}).div(3.0).to(at::kDouble).to(at::kFloat);
    const at::Tensor noise = torch::dropout(torch::ones({6}), 0.5, true);
    const at::Tensor changed = torch::zeros({6});
    const at::Tensor of_changed = changed.cos();
    changed.add_(1);
    state.add_(of_changed + changed.cos());
    return (x * third + noise).sum();
  });
  const StepProgram passed = fold_constants(recorded.program);
  CHECK(count(passed, "aten::div") == 0);
  CHECK(count(passed, "aten::_to_copy") == 0);
  CHECK(count(passed, "aten::bernoulli_") == count(recorded.program, "aten::bernoulli_"));
  CHECK(count(passed, "aten::cos") == 2);
  recorded.check_same(passed);
}

TEST_CASE(
    "of constants in a row the last one is kept; operators of others are not run beforehand") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor&) {
    static const auto scale = c10::Dispatcher::singleton()
                                  .findSchemaOrThrow("rondo_passes_test::scale", "")
                                  .typed<at::Tensor(const at::Tensor&)>();
    at::Tensor bias = torch::ones({6});
    for (int i = 0; i < 5; ++i) {
      bias = bias.cos();
    }
    return (x * scale.call(torch::ones({})) + bias).sum();
  });
  const StepProgram passed = fold_constants(recorded.program);
  CHECK(count(passed, "aten::cos") == 0);
  CHECK(count(passed, "rondo_passes_test::scale") == 1);
  const auto is_constant = [](const Slot& slot) {
    return slot.value.defined() && slot.sizes == std::vector<int64_t>{6} &&
           slot.kind == SlotKind::Constant;
  };
  CHECK(std::count_if(passed.slots.begin(), passed.slots.end(), is_constant) == 1);
  recorded.check_same(passed);
}

TEST_CASE("the gradient of a loss divided by a number begins with a constant") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor weight = state.detach().clone().set_requires_grad(true);
    const at::Tensor loss = (x * weight).sum() / 4.0;
    state.add_(torch::autograd::grad({loss}, {weight})[0]);
    return loss.detach();
  });
  const StepProgram passed = fold_constants(recorded.program);
  CHECK(count(passed, "aten::div") == count(recorded.program, "aten::div") - 1);
  recorded.check_same(passed);
}

TEST_SUITE_END();
