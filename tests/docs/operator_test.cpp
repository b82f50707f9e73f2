#include <doctest/doctest.h>
#include <torch/nn/functional.h>

#include <string>

#include "examples/plugin/soft_threshold.h"
#include "examples/plugin/squared_relu.h"
#include "support/step_probe.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("docs/operator");

namespace {

StepProbe with_squared_relu() {
  return descent([](const auto& x, const auto& label, const auto& w, const auto& b) {
    return torch::nn::functional::cross_entropy(squared_relu(torch::addmm(b, x, w)), label);
  });
}

/// Weights are moved towards zero after each update, and so is a copy that nobody looks at.
StepProbe with_threshold() {
  StepProbe probe = plain_descent();
  at::Tensor weight = probe.state[0].second;
  probe.body = [weight, body = probe.body](Backend& backend, const Batch& batch) mutable {
    Outputs outputs = body(backend, batch);
    const torch::NoGradGuard no_grad;
    soft_threshold_(weight, 0.2);
    at::Tensor copy = weight.clone();
    soft_threshold_(copy, 0.5);
    return outputs;
  };
  return probe;
}

}  // namespace

TEST_CASE("the operator of the page gives traced what it gives eager, and what LibTorch's give") {
  CHECK(traced_against_eager(&with_squared_relu) == "");
  const at::Tensor x = torch::randn({5, 4}).set_requires_grad(true);
  const at::Tensor same = x.detach().clone().set_requires_grad(true);
  const at::Tensor y = squared_relu(x);
  const at::Tensor expected = at::relu(same) * at::relu(same);
  CHECK(equal_bytes(y, expected));
  y.sum().backward();
  expected.sum().backward();
  CHECK(at::allclose(x.grad(), same.grad()));
}

TEST_CASE("a plan calls the out variants of the operator and of its backward") {
  const auto traced = backend_of("traced");
  const ProbeRun run = run_probe(&with_squared_relu, *traced, 8);
  REQUIRE(run.reports.size() == 1);
  const std::string& plan = run.reports[0].plan;
  for (const std::string op : {"example::squared_relu(", "example::squared_relu_backward("}) {
    const size_t place = plan.find(op);
    REQUIRE(place != std::string::npos);
    const size_t line = plan.rfind('\n', place) + 1;
    CHECK(plan.substr(line, place - line).find("  out ") == 0);
  }
}

TEST_CASE("an operator with facts may be left out where nobody looks at what it writes") {
  CHECK(traced_against_eager(&with_threshold) == "");
  const auto traced = backend_of("traced");
  const ProbeRun run = run_probe(&with_threshold, *traced, 8);
  REQUIRE(run.reports.size() == 1);
  const std::string& plan = run.reports[0].plan;
  const std::string op = "example::soft_threshold_(";
  const size_t place = plan.find(op);
  REQUIRE(place != std::string::npos);
  CHECK(plan.find(op, place + 1) == std::string::npos);
  CHECK(run.bytes.at("w").as_tensor().eq(0).any().item<bool>());
}

TEST_SUITE_END();
