#include "backends/eager_backend.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <memory>

#include "core/error.h"
#include "tracing/make_backend.h"

TEST_SUITE_BEGIN("backends/eager_backend");

using namespace rondo;

namespace {

std::unique_ptr<Backend> eager() {
  BackendOptions options;
  options.mode = "eager";
  return make_backend(options);
}

}  // namespace

TEST_CASE("options are checked when a backend is made") {
  BackendOptions options;
  SUBCASE("mode") {
    options.mode = "fast";
  }
  SUBCASE("device") {
    options.device = "tpu";
  }
  SUBCASE("verify") {
    options.verify = "sometimes";
  }
  SUBCASE("verify count") {
    options.verify = "0";
  }
  SUBCASE("threads") {
    options.threads = 0;
  }
  SUBCASE("environment") {
    options.environment = "old";
  }
  CHECK_THROWS_AS(make_backend(options), UsageError);
}

TEST_CASE("a step runs its body on the batch, without history on what it returns") {
  auto backend = eager();
  const at::Tensor weight = torch::ones({2}).set_requires_grad(true);
  ClosureQueue queue;
  const Outputs outputs = backend->run(
      {"train", {}, "fp32"},
      Batch{{"x", torch::full({2}, 3.0)}},
      [&](const Batch& batch) {
        CHECK(backend->is_in_step());
        CHECK_FALSE(backend->is_capturing());
        return Outputs{{"loss", (batch["x"] * weight).sum()}};
      },
      IsDue(),
      queue);
  CHECK(outputs["loss"].item<float>() == 6.0f);
  CHECK_FALSE(outputs["loss"].requires_grad());
  CHECK_FALSE(backend->is_in_step());
}

TEST_CASE("closures that are due are queued in order with their tensors; host calls run at once") {
  auto backend = eager();
  std::vector<int> order;
  ClosureQueue queue;
  const at::Tensor x = torch::ones({});
  backend->run(
      {"train", {}, "fp32"},
      {},
      [&](const Batch&) {
        backend->defer(
            {{x},
             [&](const std::vector<at::Tensor>& t) { order.push_back(t[0].item<int>()); },
             {}});
        backend->defer(
            {{}, [&](const std::vector<at::Tensor>&) { order.push_back(-1); }, {true, 1}});
        backend->defer({{}, [&](const std::vector<at::Tensor>&) { order.push_back(2); }, {}});
        backend->host_call("now", {x}, [&](const std::vector<at::Tensor>& t) {
          order.push_back(0);
          t[0].fill_(7);
        });
        return Outputs();
      },
      [](const Cadence& cadence) { return !cadence.only_log_steps; },
      queue);
  CHECK(order == std::vector<int>{0});
  REQUIRE(queue.size() == 2);
  for (const StepClosure& closure : queue) {
    closure.run(closure.tensors);
  }
  CHECK(order == std::vector<int>{0, 7, 2});
}

TEST_CASE("outside of a step nothing can be deferred or called") {
  auto backend = eager();
  CHECK_THROWS_AS(backend->defer({}), UsageError);
  CHECK_THROWS_AS(backend->host_call("f", {}, HostFunction()), UsageError);
}

TEST_CASE("a body that throws leaves no step behind") {
  auto backend = eager();
  ClosureQueue queue;
  const StepBody broken = [](const Batch&) -> Outputs { throw std::runtime_error("broken"); };
  CHECK_THROWS_AS(backend->run({}, {}, broken, IsDue(), queue), std::runtime_error);
  CHECK_FALSE(backend->is_in_step());
}

TEST_SUITE_END();
