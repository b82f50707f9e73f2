#include "tracing/plan/chains.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <functional>
#include <vector>

#include "tracing/kernel_checks.h"

TEST_SUITE_BEGIN("tracing/plan/chains");

using namespace rondo;
using namespace rondo::test;

namespace {

/// The lengths of the chains of a step.
std::vector<size_t> chains_of(const Plan& plan) {
  std::vector<size_t> lengths;
  for (const PlannedInstruction& planned : plan.instructions) {
    if (planned.chain > 1) {
      lengths.push_back(planned.chain);
    }
  }
  return lengths;
}

/// Runs what `body` does with chains and by the interpreter, on several batches.
void check_chains(const char* name,
                  const Body& body,
                  const std::function<Batch(int)>& batch_of,
                  const std::vector<size_t>& lengths) {
  CAPTURE(name);
  Recorded recorded(body, batch_of(0));
  PlannedExecutor plan(recorded.program, TextLog(LogLevel::Error));
  JitExecutor interpreter(recorded.program);
  if (uses_all_kernels()) {
    CHECK(chains_of(plan.plan()) == lengths);
  }
  for (int step = 0; step < 6; ++step) {
    std::vector<at::Tensor> expected;
    for (const at::Tensor& tensor : interpreter.run(batch_of(step), kAlwaysDue)) {
      expected.push_back(tensor.clone());
    }
    const std::vector<at::Tensor>& got = plan.run(batch_of(step), kAlwaysDue);
    for (size_t i = 0; i < expected.size(); ++i) {
      CHECK(equal_bytes(got[i], expected[i]));
    }
  }
}

/// More than two parts, of which the last one is short.
constexpr int64_t kMany = 10007;

Batch two(int step) {
  return {{"a", with_odd_numbers(random({kMany}, step))}, {"b", random({kMany}, step + 50)}};
}

}  // namespace

TEST_CASE("element-wise operators in a row are a chain, whatever dies between them") {
  check_chains("a function written by hand",
               [](const Batch& x) {
                 const at::Tensor a = x["a"];
                 return std::vector{(1 - a * 0.5) * (a.pow(3) + x["b"]) / 3 - a};
               },
               two,
               {8});
  check_chains("results that are used later as well",
               [](const Batch& x) {
                 const at::Tensor sum = x["a"] + x["b"];
                 const at::Tensor root = (sum * sum).sqrt();
                 return std::vector{sum, -root, root.sum()};
               },
               two,
               {4});
  check_chains("other shapes of as many elements, in place too",
               [](const Batch& x) {
                 at::Tensor a = x["a"] * 2;
                 a.view({1, kMany}).add_(x["b"]);
                 return std::vector{a.view({kMany, 1}) * 3};
               },
               two,
               {3});
}

TEST_CASE("a chain ends where other elements are needed") {
  check_chains("the neighbours of what was just computed",
               [](const Batch& x) {
                 const at::Tensor a = x["a"] * 2;
                 return std::vector{a.narrow(0, 1, kMany - 1) - a.narrow(0, 0, kMany - 1)};
               },
               two,
               {});
  check_chains("one element of it",
               [](const Batch& x) {
                 const at::Tensor a = x["a"] * 2;
                 return std::vector{x["b"] * a.select(0, kMany - 1)};
               },
               two,
               {});
  check_chains("neighbours, written in place",
               [](const Batch& x) {
                 const at::Tensor a = x["a"] * 2;
                 a.narrow(0, 1, kMany - 1).mul_(a.narrow(0, 0, kMany - 1).clone());
                 a.narrow(0, 0, kMany - 1).add_(x["b"].narrow(0, 0, kMany - 1));
                 return std::vector{a};
               },
               two,
               {});
  check_chains("too few elements to gain anything",
               [](const Batch& x) {
                 const at::Tensor a = x["a"].narrow(0, 0, 1000);
                 return std::vector{a * 2 + a};
               },
               two,
               {});
}

TEST_CASE("without chains nothing is run together") {
  Recorded recorded([](const Batch& x) { return std::vector{x["a"] * x["b"] + x["b"]}; }, two(0));
  PlanOptions options;
  options.chains = false;
  CHECK(chains_of(make_plan(recorded.program, options)).empty());
}

TEST_SUITE_END();
