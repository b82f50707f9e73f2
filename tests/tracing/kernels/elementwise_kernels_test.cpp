#include <doctest/doctest.h>
#include <torch/types.h>
#include <torch/version.h>

#include <functional>
#include <vector>

#include "support/with_threads.h"
#include "tracing/kernel_checks.h"
#include "tracing/kernels/own_kernels.h"

TEST_SUITE_BEGIN("tracing/kernels/elementwise_kernels");

using namespace rondo;
using namespace rondo::test;

TEST_CASE("element-wise operators, with zeros of both signs, infinities and NaN") {
  check_same(
      "two of a shape",
      [](const Batch& x) {
        const at::Tensor a = x["a"];
        const at::Tensor b = x["b"];
        return std::vector{a + b, a - b, a * b, at::relu(a), at::threshold_backward(b, a, 0)};
      },
      pairs({13, 11}, {13, 11}),
      5);
  check_same(
      "parts of matrices, and orders other than row after row",
      [](const Batch& x) {
        const at::Tensor a = x["a"].narrow(1, 3, 5);
        const at::Tensor b = x["b"].narrow(1, 2, 5);
        return std::vector{a + b,
                           at::relu(a),
                           a.t() * b.t(),
                           x["a"].narrow(0, 2, 4) - x["b"].narrow(0, 5, 4),
                           a * 0.5};
      },
      pairs({13, 11}, {13, 11}),
      5);
  check_same(
      "three dimensions whose rows cannot be joined",
      [](const Batch& x) {
        const at::Tensor a = x["a"].narrow(1, 1, 3).narrow(2, 0, 5);
        return std::vector{a * x["b"].narrow(1, 0, 3).narrow(2, 2, 5)};
      },
      pairs({4, 5, 7}, {4, 6, 9}),
      1);
  check_same(
      "a row that is repeated",
      [](const Batch& x) {
        return std::vector{x["a"] + x["b"], x["a"] - x["b"].expand({13, 11})};
      },
      pairs({13, 11}, {11}),
      2);
  check_same(
      "a column that is repeated is left to LibTorch",
      [](const Batch& x) { return std::vector{x["a"] * x["b"]}; },
      pairs({13, 11}, {13, 1}),
      0);
  check_same(
      "in place",
      [](const Batch& x) {
        at::Tensor a = x["a"] + 1.5;
        a.narrow(1, 3, 5).add_(x["b"].narrow(1, 1, 5));
        a.sub_(x["b"]).mul_(x["b"]).mul_(x["c"]).mul_(0.3);
        at::relu_(a);
        return std::vector{a};
      },
      [](int step) {
        return Batch{{"a", with_odd_numbers(random({13, 11}, step))},
                     {"b", random({13, 11}, step + 100)},
                     {"c", random({}, step + 200)}};
      },
      7);
  check_same(
      "a tensor of one number, of another dtype too",
      [](const Batch& x) {
        return std::vector{x["a"] * x["b"], x["a"] * x["b"].to(at::kDouble)};
      },
      pairs({37}, {}),
      2);
  check_same(
      "no elements",
      [](const Batch& x) { return std::vector{x["a"].narrow(0, 0, 0) + x["b"].narrow(0, 0, 0)}; },
      pairs({3, 4}, {3, 4}),
      0);
  check_same(
      "a number",
      [](const Batch& x) {
        return std::vector{x["a"] * 0.1, x["b"] * 3};
      },
      pairs({37}, {5}),
      2);
}

TEST_CASE("quotients, powers, roots, signs, and numbers before and behind") {
  check_same(
      "of two tensors, or of one",
      [](const Batch& x) {
        const at::Tensor a = x["a"];
        at::Tensor in_place = x["b"] * 2;
        in_place.div_(a);
        return std::vector{a / x["b"], -a, a.sqrt(), a.square(), a.pow(3), in_place};
      },
      pairs({13, 11}, {13, 11}),
      7);
  check_same(
      "with a number",
      [](const Batch& x) {
        const at::Tensor a = x["a"];
        at::Tensor in_place = x["b"] * 2;
        in_place.div_(3);
        return std::vector{a + 0.1,
                           a - 0.1,
                           a / 3,
                           0.1 - a,
                           at::rsub(a, 0.7),
                           1 / a,
                           at::full_like(a, 0.1) * a,
                           in_place};
      },
      pairs({13, 11}, {13, 11}),
      11);
  check_same(
      "with a tensor of one number",
      [](const Batch& x) {
        return std::vector{x["a"] + x["b"], x["a"] - x["b"], x["b"] - x["a"], x["a"] / x["b"]};
      },
      pairs({37}, {}),
      4);
  check_same(
      "other powers, and multiples, are left to LibTorch",
      [](const Batch& x) {
        return std::vector{x["a"].pow(2.5), at::add(x["a"], x["b"], 2)};
      },
      pairs({37}, {37}),
      0);
}

TEST_CASE("a result is not put over an argument that another argument is a part of") {
  // Zeros hide it from the trials of the first steps.
  const auto batch = [](int step) {
    return Batch{{"a", step < 3 ? at::zeros({6, 6}) : random({6, 6}, step)}};
  };
  check_same(
      "the first row",
      [](const Batch& x) {
        const at::Tensor a = x["a"] * x["a"];
        return std::vector{a - a.select(0, 0)};
      },
      batch,
      2);
  check_same(
      "another order",
      [](const Batch& x) {
        const at::Tensor a = (x["a"] * x["a"]).view({2, 3, 6});
        const at::Tensor b = a.narrow(1, 0, 2).narrow(2, 0, 2);
        return std::vector{b + b.transpose(0, 1)};
      },
      batch,
      2);
}

TEST_CASE("functions from Sleef, in whole vectors, with numbers that they treat in special ways") {
  const auto batch = [](int step) {
    return Batch{{"a", with_odd_numbers(random({6, 32}, step) * 4)},
                 {"b", random({6, 32}, step + 9)}};
  };
  const std::function<at::Tensor(const at::Tensor&, const at::Tensor&)> functions[] = {
      [](const at::Tensor& a, const at::Tensor&) { return a.sigmoid(); },
      [](const at::Tensor& a, const at::Tensor&) { return (a - 1).narrow(1, 16, 16).sigmoid_(); },
      [](const at::Tensor& a, const at::Tensor& b) { return at::sigmoid_backward(b, a); },
      [](const at::Tensor& a, const at::Tensor&) { return a.exp(); },
      [](const at::Tensor& a, const at::Tensor&) { return a.tanh(); },
      [](const at::Tensor& a, const at::Tensor&) { return (a - 1).tanh_(); },
      [](const at::Tensor& a, const at::Tensor& b) { return at::tanh_backward(b, a); },
      [](const at::Tensor& a, const at::Tensor& b) {
        return at::tanh_backward(b.narrow(1, 16, 16), a.narrow(1, 0, 16));
      },
  };
  for (const auto& function : functions) {
    CAPTURE(&function - functions);
    Recorded recorded([&](const Batch& x) { return std::vector{function(x["a"], x["b"])}; },
                      batch(0));
    PlannedExecutor plan(recorded.program, TextLog(LogLevel::Error));
    JitExecutor interpreter(recorded.program);
    const int before = recorded.kernels_of_own(plan.plan());
    for (int step = 0; step < 4; ++step) {
      const at::Tensor expected = interpreter.run(batch(step), kAlwaysDue)[0].clone();
      CHECK(equal_bytes(plan.run(batch(step), kAlwaysDue)[0], expected));
    }
    // A sigmoid that negates, as that of newer versions does, gives a NaN another sign than one
    // that subtracts from zero: it is called itself then.
    constexpr bool kMayNegate = TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR > 6;
    const bool may_fail = kMayNegate && &function == functions;
    CHECK(recorded.kernels_of_own(plan.plan()) >= before - (may_fail ? 1 : 0));
  }
}

TEST_CASE("large tensors, which several threads share") {
  const WithThreads three(3);
  check_same(
      "side by side, and in a chain",
      [](const Batch& x) {
        const at::Tensor sum = x["a"] + x["b"];
        return std::vector{at::relu(sum * x["a"]), sum};
      },
      pairs({700, 801}, {700, 801}),
      3);
  check_same(
      "rows that lie apart",
      [](const Batch& x) {
        return std::vector{x["a"].narrow(1, 3, 700) * x["b"].narrow(1, 0, 700)};
      },
      pairs({900, 801}, {900, 801}),
      1);
}

TEST_SUITE_END();
