#include <doctest/doctest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <ATen/record_function.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/step_probe.h"
#include "tracing/traced_backend.h"

// What of a traced step runs on the host: closures behind it, and host calls at their points.
TEST_SUITE_BEGIN("tracing/traced_closures");

using namespace rondo;
using namespace rondo::test;

namespace {

// The plain step that also queues closures: each notes its number in `order`.
StepProbe deferring(std::vector<int>& order, std::vector<Cadence> cadences) {
  StepProbe probe = plain_descent();
  const at::Tensor w = probe.state[0].second;
  const auto body = probe.body;
  probe.body = [=, &order](Backend& backend, const Batch& batch) {
    Outputs outputs = body(backend, batch);
    for (size_t i = 0; i < cadences.size(); ++i) {
      const auto note = [&order, i](const std::vector<at::Tensor>&) {
        order.push_back(static_cast<int>(i));
      };
      backend.defer({{w.grad().norm() * (1.0 + static_cast<double>(i)), w}, note, cadences[i]});
    }
    return outputs;
  };
  return probe;
}

// The plain step that lets the host set its learning rate.
StepProbe scheduled(int& calls) {
  StepProbe probe = plain_descent();
  const at::Tensor lr = probe.state[2].second;
  const auto body = probe.body;
  probe.body = [=, &calls](Backend& backend, const Batch& batch) {
    backend.host_call("schedule", {lr}, [&calls](const std::vector<at::Tensor>& tensors) {
      tensors[0].fill_(0.1 / ++calls);
    });
    return body(backend, batch);
  };
  return probe;
}

const Cadence kAlways;
const Cadence kLogSteps{true, 1};
const Cadence kEveryThree{false, 3};

}  // namespace

TEST_CASE("closures run in order after every step that they are due after, captured or replayed") {
  std::vector<int> eager_order;
  std::vector<int> traced_order;
  const auto due = [](int step, const Cadence& cadence) {
    return cadence == kAlways || (cadence == kLogSteps ? step % 2 == 0 : step % 3 == 0);
  };
  const auto run = [&](const char* mode, std::vector<int>& order) {
    const auto backend = backend_of(mode);
    return run_probe(
        [&] {
          StepProbe probe = deferring(order, {kAlways, kLogSteps, kEveryThree});
          probe.is_due = due;
          return probe;
        },
        *backend,
        12);
  };
  const ProbeRun eager = run("eager", eager_order);
  const ProbeRun traced = run("traced", traced_order);
  CHECK(first_difference(eager.bytes, traced.bytes) == "");
  CHECK(eager_order == traced_order);
  CHECK(std::vector<int>(eager_order.begin(), eager_order.begin() + 6) ==
        std::vector<int>{0, 1, 2, 0, 0, 1});
}

TEST_CASE("what a closure writes into its copy of a tensor does not show in another one's") {
  const auto make = [] {
    StepProbe probe = plain_descent();
    probe.body = [body = probe.body](Backend& backend, const Batch& batch) {
      Outputs outputs = body(backend, batch);
      const at::Tensor loss = outputs["loss"].detach();
      for (int i = 0; i < 2; ++i) {
        const auto write = [](const std::vector<at::Tensor>& tensors) { tensors[0].add_(1); };
        backend.defer({{loss.clone()}, write, kAlways});
      }
      return outputs;
    };
    return probe;
  };
  CHECK(traced_against_eager(make) == "");
}

TEST_CASE("a step in pieces asks once which closures are due, when it begins") {
  const auto backend = backend_of("traced", "off");
  StepProbe probe = plain_descent();
  const at::Tensor w = probe.state[0].second;
  backend->set_state([&] { return probe.state; });
  const StepBody body = [&](const Batch& batch) {
    Outputs outputs = probe.body(*backend, batch);
    backend->defer({{w.grad().norm()}, [](const std::vector<at::Tensor>&) {}, kLogSteps});
    return outputs;
  };
  ClosureQueue queue;
  int step = 0;
  while (step < 2) {
    backend->run({"train", {}, "fp32"}, random_batch(step++), body, IsDue(), queue);
  }
  for (const bool is_due : {false, true}) {
    CAPTURE(is_due);
    queue.clear();
    bool is_due_now = is_due;
    const IsDue asked = [&](const Cadence&) { return is_due_now; };
    const Outputs* outputs = backend->start(
        {"train", {}, "fp32"}, random_batch(step++), body, asked, queue, Deadline::min());
    REQUIRE(outputs == nullptr);
    is_due_now = !is_due;
    while (outputs == nullptr) {
      outputs = backend->resume(Deadline::min());
    }
    CHECK(queue.size() == (is_due ? 1 : 0));
  }
}

TEST_CASE("the verification fires no closure and calls no host function a second time") {
  int calls = 0;
  std::vector<int> order;
  const auto backend = backend_of("traced", "1");
  run_probe(
      [&] {
        StepProbe probe = scheduled(calls);
        const auto body = probe.body;
        probe.body = [=, &order](Backend& b, const Batch& batch) {
          b.defer({{}, [&order](const std::vector<at::Tensor>&) { order.push_back(1); }, {}});
          return body(b, batch);
        };
        return probe;
      },
      *backend,
      8);
  CHECK(calls == 8);
  CHECK(order.size() == 8);
}

TEST_CASE("neither does a third capture, which is made beside the verified replay") {
  int calls = 0;
  std::vector<int> order;
  const auto make = [&] {
    calls = 0;
    order.clear();
    StepProbe probe = with_momentum(scheduled(calls));
    const at::Tensor w = probe.state[0].second;
    probe.body = [=, body = probe.body, &order](Backend& b, const Batch& batch) {
      b.defer({{w}, [&order](const std::vector<at::Tensor>&) { order.push_back(1); }, {}});
      return body(b, batch);
    };
    return probe;
  };
  CHECK(traced_against_eager(make, 8, 2) == "");
  CHECK(calls == 8);
  CHECK(order.size() == 8);
}

TEST_CASE("closures queued while capturing first run once; those of the second repeat") {
  std::vector<int> order;
  int body_runs = 0;
  const auto backend = backend_of("traced", "off");
  run_probe(
      [&] {
        StepProbe probe;
        probe.body = [&](Backend& b, const Batch&) {
          const int run = body_runs++;
          b.defer(
              {{}, [&order, run](const std::vector<at::Tensor>&) { order.push_back(run); }, {}});
          return Outputs();
        };
        return probe;
      },
      *backend,
      4);
  CHECK(order == std::vector<int>{0, 1, 1, 1});
}

TEST_CASE("a host call runs at its point of every replay and may write state") {
  int eager_calls = 0;
  int traced_calls = 0;
  const auto eager = backend_of("eager");
  const auto traced = backend_of("traced");
  const ProbeRun expected = run_probe([&] { return scheduled(eager_calls); }, *eager, 8);
  const ProbeRun got = run_probe([&] { return scheduled(traced_calls); }, *traced, 8);
  CHECK(first_difference(expected.bytes, got.bytes) == "");
  CHECK(traced_calls == 8);
}

TEST_CASE("what a host function throws in a replay arrives as it was thrown") {
  struct Stop : std::runtime_error {
    using std::runtime_error::runtime_error;
  };

  int calls = 0;
  const auto backend = backend_of("traced", "off");
  const auto make = [&] {
    StepProbe probe = plain_descent();
    const auto body = probe.body;
    probe.body = [=, &calls](Backend& b, const Batch& batch) {
      b.host_call("fuse", {}, [&calls](const std::vector<at::Tensor>&) {
        if (++calls == 4) {
          throw Stop("blown");
        }
      });
      return body(b, batch);
    };
    return probe;
  };
  CHECK_THROWS_AS(run_probe(make, *backend, 8), Stop);
  CHECK(calls == 4);
  CHECK_FALSE(backend->is_in_step());
}

TEST_CASE("operators that feed only closures that are not due are skipped") {
  static int calls = 0;
  const auto count_calls = [](const at::RecordFunction& function) {
    calls += std::string(function.name()) == "aten::erfinv" ? 1 : 0;
    return std::unique_ptr<at::ObserverContext>();
  };
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(count_calls));
  std::vector<int> calls_of_steps;
  std::vector<int> order;
  const auto backend = backend_of("traced", "off");
  run_probe(
      [&] {
        StepProbe probe = plain_descent();
        const at::Tensor w = probe.state[0].second;
        probe.body = [=, body = probe.body, &order](Backend& b, const Batch& batch) {
          Outputs outputs = body(b, batch);
          const auto note = [&order](const std::vector<at::Tensor>&) { order.push_back(0); };
          b.defer({{w.grad().erfinv()}, note, kLogSteps});  // by no kernel of rondo's own
          return outputs;
        };
        probe.is_due = [](int step, const Cadence&) { return step == 3 || step == 5; };
        probe.batch = [&](int step) {
          calls_of_steps.push_back(std::exchange(calls, 0));
          return random_batch(step);
        };
        return probe;
      },
      *backend,
      7);
  at::removeCallback(handle);
  CHECK(order == std::vector<int>{0, 0});
  // Step 2 begins the replays; what a step did is read at the next one.
  CHECK(calls_of_steps[3] == 0);
  CHECK(calls_of_steps[4] > 0);
  CHECK(calls_of_steps[5] == 0);
  CHECK(calls_of_steps[6] > 0);
}

TEST_SUITE_END();
