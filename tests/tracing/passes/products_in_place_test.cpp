#include <doctest/doctest.h>
#include <torch/types.h>

#include "tracing/captured_steps.h"
#include "tracing/instruction_count.h"
#include "tracing/passes/passes.h"

TEST_SUITE_BEGIN("tracing/passes/products_in_place");

using namespace rondo;
using namespace rondo::test;

TEST_CASE("a product that is only copied or added somewhere is computed there") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor& state) {
    const at::Tensor kept = torch::zeros({6, 6});
    kept.copy_(x.t().mm(x));
    const at::Tensor more = x.t().mm(x.sin());
    kept.add_(more);
    state.add_(kept.sum(0));
    return kept.sum();
  });
  const StepProgram passed = put_products_in_place(recorded.program);
  CHECK(count(passed, "aten::mm") == 0);
  CHECK(count(passed, "rondo::mm_to_") == 2);
  CHECK(count(passed, "aten::copy_") == 0);
  recorded.check_same(passed);
}

TEST_CASE("a product stays where it is when it, or what it goes to, is used in between") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor&) {
    const at::Tensor read_between = torch::zeros({6, 6});
    const at::Tensor a = x.t().mm(x);
    const at::Tensor sum = read_between.sum();
    read_between.copy_(a);
    const at::Tensor used_twice = torch::zeros({6, 6});
    const at::Tensor b = x.t().mm(x.cos());
    used_twice.add_(b);
    const at::Tensor scaled = torch::zeros({6, 6});
    scaled.add_(x.t().mm(x.exp()), 0.5);
    return read_between.sum() + sum + used_twice.sum() + b.sum() + scaled.sum();
  });
  const StepProgram passed = put_products_in_place(recorded.program);
  CHECK(count(passed, "rondo::mm_to_") == 0);
  recorded.check_same(passed);
}

TEST_CASE("a sum of products is added up in the first of them, unless that is needed later") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor& state) {
    at::Tensor sum = x.t().mm(x);
    sum = sum + x.t().mm(x.sin());
    sum = sum + x.t().mm(x.cos());
    const at::Tensor needed = x.t().mm(x.exp());
    const at::Tensor other = needed + x.t().mm(x.tanh());
    state.add_((sum + needed).sum(0));
    return (other + sum).t();
  });
  const StepProgram passed = put_products_in_place(recorded.program);
  CHECK(count(passed, "rondo::mm_to_") == 2);
  CHECK(count(passed, "aten::mm") == 3);
  recorded.check_same(passed);
}

TEST_CASE("a sum that is the step's output may be added up in a product's place") {
  CapturedSteps recorded([](const at::Tensor& x, const at::Tensor&) {
    const at::Tensor first = x.t().mm(x);
    return first + x.t().mm(x.sin());
  });
  const StepProgram passed = put_products_in_place(recorded.program);
  CHECK(count(passed, "rondo::mm_to_") == 1);
  recorded.check_same(passed);
}

TEST_SUITE_END();
