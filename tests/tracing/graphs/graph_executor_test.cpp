#include "tracing/graphs/graph_executor.h"

#include <doctest/doctest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/generator_state.h"
#include "core/error.h"
#include "support/contains.h"
#include "support/fake_device.h"
#include "support/step_probe.h"
#include "tracing/make_backend.h"

TEST_SUITE_BEGIN("tracing/graphs/graph_executor");

using namespace rondo;
using namespace rondo::test;

namespace {

bool lacks_device() {
  if (!has_fake_device()) {
    MESSAGE("skipped: LibTorch before 2.4 has no devices of a program's own");
  }
  return !has_fake_device();
}

std::unique_ptr<Backend> device_backend(const std::string& mode,
                                        std::vector<std::string>* warnings = nullptr,
                                        BackendOptions options = {}) {
  options.mode = mode;
  options.device = "fake";
  options.on_refusal = warnings == nullptr ? "error" : "eager";
  return make_backend(options, TextLog::to([warnings](LogLevel level, std::string_view text) {
                        if (warnings != nullptr && level == LogLevel::Warning) {
                          warnings->emplace_back(text);
                        }
                      }));
}

using MakeProbe = std::function<StepProbe()>;

/// As a probe of the CPU, with its weights on the device.
StepProbe on_device(StepProbe (*make)(const at::Tensor& w, const at::Tensor& b)) {
  const auto parameter = [](at::IntArrayRef sizes) {
    return torch::randn(sizes).to(fake_device()).set_requires_grad(true);
  };
  return make(parameter({6, 3}), parameter({3}));
}

at::Tensor loss_of(const Batch& batch, const at::Tensor& w, const at::Tensor& b) {
  return plain_loss(batch["x"], batch["label"], w, b);
}

StepProbe descending(const at::Tensor& w, const at::Tensor& b) {
  const at::Tensor lr = torch::full({}, 0.05, at::kDouble);
  StepProbe probe;
  probe.state = {{"w", w}, {"b", b}, {"lr", lr}};
  probe.body = [=](Backend&, const Batch& batch) {
    w.mutable_grad().reset();
    b.mutable_grad().reset();
    const at::Tensor value = loss_of(batch, w, b);
    value.backward();
    descend({w, b}, lr);
    return Outputs{{"loss", value}};
  };
  return probe;
}

// The host changes the rate after each step, as a scheduler does.
StepProbe scheduled(const at::Tensor& w, const at::Tensor& b) {
  StepProbe probe = descending(w, b);
  const at::Tensor lr = probe.state.back().second;
  probe.body = [=, body = probe.body](Backend& backend, const Batch& batch) {
    Outputs outputs = body(backend, batch);
    backend.host_call(
        "scheduler", {lr}, [](const std::vector<at::Tensor>& numbers) { numbers[0].mul_(0.9); });
    return outputs;
  };
  return probe;
}

// A host call in the middle writes on the device and on the host.
StepProbe split(const at::Tensor& w, const at::Tensor& b) {
  StepProbe probe = descending(w, b);
  const at::Tensor lr = probe.state.back().second;
  probe.body = [=](Backend& backend, const Batch& batch) {
    w.mutable_grad().reset();
    b.mutable_grad().reset();
    const at::Tensor value = loss_of(batch, w, b);
    value.backward();
    backend.host_call("scale", {w.grad(), lr}, [](const std::vector<at::Tensor>& tensors) {
      tensors[0].mul_(0.5);
      tensors[1].mul_(0.9);
    });
    descend({w, b}, lr);
    return Outputs{{"loss", value}};
  };
  return probe;
}

StepProbe with_dropout(const at::Tensor& w, const at::Tensor& b) {
  StepProbe probe = descending(w, b);
  const at::Tensor lr = probe.state.back().second;
  probe.body = [=](Backend& backend, const Batch& batch) {
    w.mutable_grad().reset();
    b.mutable_grad().reset();
    const at::Tensor x = torch::dropout(batch["x"], 0.5, /*train=*/true);
    const at::Tensor value = plain_loss(x, batch["label"], w, b);
    value.backward();
    descend({w, b}, lr);
    backend.defer({{value, lr}, [](const std::vector<at::Tensor>&) {}, {}});
    return Outputs{{"loss", value}};
  };
  return probe;
}

struct DeviceRun {
  ProbeRun run;
  at::Tensor random;
};

DeviceRun run_on_device(const MakeProbe& make, Backend& backend, int steps) {
  seed_generator(3, fake_device());
  ProbeRun run = run_probe(make, backend, steps);
  return {std::move(run), generator_state(fake_device())};
}

/// As `traced_against_eager`, on the device.
std::string graphs_against_eager(const MakeProbe& make, int steps = 10) {
  const DeviceRun expected = run_on_device(make, *device_backend("eager"), steps);
  const auto traced = device_backend("traced");
  const DeviceRun got = run_on_device(make, *traced, steps);
  if (got.run.replays() != steps - 2) {
    return "only " + std::to_string(got.run.replays()) + " replays";
  }
  return equal_bytes(expected.random, got.random)
             ? first_difference(expected.run.bytes, got.run.bytes)
             : "the device's random numbers";
}

}  // namespace

TEST_CASE("graphs give the bytes of eager steps, numbers of the host and random ones included") {
  if (lacks_device()) {
    return;
  }
  for (auto* const make : {&descending, &scheduled, &split, &with_dropout}) {
    CHECK(graphs_against_eager([make] { return on_device(make); }) == "");
  }
}

TEST_CASE("a replay launches graphs and reads nothing of the device") {
  if (lacks_device()) {
    return;
  }
  const auto backend = device_backend("traced");
  const auto make = [] { return on_device(&split); };
  const FakeDeviceCounts& counts = fake_device_counts();
  const int64_t launches = counts.launches;
  const ProbeRun run = run_probe(make, *backend, 6);
  CHECK(counts.launches - launches == 2 * run.replays());  // the host call cuts the step in two
  CHECK(contains(run.reports.at(0).plan, "2 graphs of fake:0"));
  CHECK(contains(run.reports.at(0).plan, "1 numbers of the host mirrored"));
}

TEST_CASE("replays that are not compared wait for the device as often as the step asks to") {
  if (lacks_device()) {
    return;
  }
  BackendOptions options;
  options.verify = "off";
  const auto reads_in = [&](int steps) {
    const auto backend = device_backend("traced", nullptr, options);
    const int64_t before = fake_device_counts().reads;
    run_probe([] { return on_device(&scheduled); }, *backend, steps);
    return fake_device_counts().reads - before;
  };
  CHECK(reads_in(20) == reads_in(6));
}

TEST_CASE("options that replays on a device do not know are warned of, and unsteady bits allowed") {
  if (lacks_device()) {
    return;
  }
  std::vector<std::string> warnings;
  BackendOptions options;
  options.timed_replays = 3;
  options.exact = false;
  device_backend("traced", &warnings, options);
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[0] == "backend.timed_replays has no effect on fake:0");
  CHECK(warnings[1] == "backend.exact = false has no effect on fake:0");
  options = {};
  options.deterministic = false;
  options.verify = "2";
  device_backend("traced", &warnings, options);
  REQUIRE(warnings.size() == 3);
  CHECK(contains(warnings[2], "with deterministic = false replays may round differently"));
}

TEST_CASE("a process takes a device in turn with the others of its host") {
  if (lacks_device()) {
    return;
  }
  CHECK(find_device("fake", 3) == fake_device());  // there is one
  CHECK(!find_device("fake:1"));
  CHECK(find_device("cpu", 3) == c10::Device(c10::kCPU));
}

TEST_CASE("memory that a step lets go is used again within its graph") {
  if (lacks_device()) {
    return;
  }
  const auto make = [] {
    StepProbe probe;
    probe.body = [](Backend&, const Batch& batch) {
      at::Tensor x = batch["x"].repeat({64, 1});
      for (int i = 0; i < 20; ++i) {
        x = (x + 1).tanh();
      }
      return Outputs{{"mean", x.mean()}};
    };
    return probe;
  };
  const int64_t before = fake_device_counts().graph_memory;
  CHECK(graphs_against_eager(make) == "");
  const int64_t of_one = 64 * 8 * 6 * 4;
  CHECK(fake_device_counts().graph_memory - before < 5 * of_one);
}

TEST_CASE("what a graph cannot repeat runs as it is written, with a warning") {
  if (lacks_device()) {
    return;
  }
  const auto warning_of = [](const std::function<Outputs(const Batch&, const at::Tensor&)>& body) {
    std::vector<std::string> warnings;
    const auto backend = device_backend("traced", &warnings);
    run_probe(
        [&] {
          const at::Tensor count = torch::zeros({}, at::kDouble);
          StepProbe probe;
          probe.state = {{"count", count}};
          probe.body = [&body, count](Backend&, const Batch& batch) { return body(batch, count); };
          return probe;
        },
        *backend,
        5);
    CHECK(backend->eager_steps().size() == 1);
    return warnings.empty() ? std::string() : warnings.front();
  };
  CHECK(contains(warning_of([](const Batch& batch, const at::Tensor&) {
                   const double sum = batch["x"].sum().item<double>();
                   return Outputs{{"y", batch["x"] * (sum > 0 ? 1 : -1)}};
                 }),
                 "on the host"));
  CHECK(contains(warning_of([](const Batch& batch, const at::Tensor& count) {
                   count.add_(1);
                   return Outputs{{"y", batch["x"] * count}};
                 }),
                 "writes a tensor on the host"));
  CHECK(contains(warning_of([](const Batch& batch, const at::Tensor&) {
                   return Outputs{{"y", batch["x"] * torch::rand({})}};
                 }),
                 "draws random numbers on the host"));
}

TEST_CASE("a device without graphs, and one that is not there, are named") {
  BackendOptions options;
  options.device = "cuda:7 or so";
  CHECK_THROWS_WITH_AS(
      make_backend(options), doctest::Contains("\"cpu\", \"cuda\" or \"cuda:N\""), UsageError);
  if (lacks_device()) {
    return;
  }
  options.device = "fake";
  options.executor = "interpreter";
  CHECK_THROWS_WITH_AS(
      make_backend(options), doctest::Contains("backend.executor: expected \"plan\""), UsageError);
}

TEST_SUITE_END();
