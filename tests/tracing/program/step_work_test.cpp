#include "tracing/program/step_work.h"

#include <doctest/doctest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <functional>

#include "backends/step.h"
#include "support/step_probe.h"
#include "tracing/make_backend.h"
#include "tracing/recording/dispatcher.h"
#include "tracing/recording/recorder.h"
#include "tracing/traced_backend.h"

TEST_SUITE_BEGIN("tracing/program/step_work");

using namespace rondo;
using namespace rondo::test;

namespace {

StepProgram program_of(const Batch& batch,
                       const std::function<at::Tensor()>& body,
                       const CapturedState& state = {}) {
  register_with_dispatcher();
  Recorder recorder("test", batch, [&] { return state; });
  Outputs outputs;
  {
    const RecordingScope scope(recorder);
    outputs.set("y", body());
  }
  return recorder.finish(outputs);
}

double flops_of_body(const Batch& batch, const std::function<at::Tensor()>& body) {
  const Flops flops = flops_of(program_of(batch, body));
  return flops.empty() ? 0.0 : flops.at(at::kFloat);
}

}  // namespace

TEST_CASE("products count two operations for each pair of numbers") {
  const at::Tensor a = torch::rand({5, 7});
  const at::Tensor b = torch::rand({7, 3});
  const at::Tensor bias = torch::rand({3});
  const Batch batch{{"a", a}, {"b", b}, {"bias", bias}};
  CHECK(flops_of_body(batch, [&] { return a.mm(b); }) == 2 * 5 * 7 * 3);
  CHECK(flops_of_body(batch, [&] { return torch::addmm(bias, a, b); }) == 2 * 5 * 7 * 3);
  CHECK(flops_of_body(batch, [&] { return a.mv(bias.new_ones({7})); }) == 2 * 5 * 7);
  CHECK(flops_of_body(batch, [&] { return a.exp().add(1.0); }) == 0);
  const at::Tensor many = torch::rand({4, 5, 7});
  const at::Tensor others = torch::rand({4, 7, 2});
  CHECK(flops_of_body({{"x", many}, {"y", others}}, [&] { return many.bmm(others); }) ==
        2 * 4 * 5 * 7 * 2);
}

TEST_CASE("a convolution counts its window for each result, and its gradients twice that") {
  const at::Tensor x = torch::rand({2, 4, 9, 9});
  const at::Tensor weight = torch::rand({6, 4, 3, 3});
  const double forward = 2.0 * (2 * 6 * 7 * 7) * (4 * 3 * 3);
  const Batch batch{{"x", x}, {"w", weight}};
  CHECK(flops_of_body(batch, [&] { return torch::conv2d(x, weight); }) == forward);
  const at::Tensor transposed = torch::rand({4, 6, 3, 3});
  CHECK(flops_of_body({{"x", x}, {"w", transposed}}, [&] {
          return torch::conv_transpose2d(x, transposed);
        }) == 2.0 * (2 * 4 * 9 * 9) * (6 * 3 * 3));
  at::Tensor trained = weight.clone().requires_grad_();
  const StepProgram program = program_of({{"x", x}},
                                         [&] {
                                           const at::Tensor loss = torch::conv2d(x, trained).sum();
                                           return torch::autograd::grad({loss}, {trained})[0];
                                         },
                                         {{"w", trained}});
  CHECK(flops_of(program).at(at::kFloat) == 2 * forward);  // the input needs no gradient
}

TEST_CASE("views move no bytes, and each tensor counts once an operator") {
  const at::Tensor a = torch::rand({4, 6});
  const StepProgram program =
      program_of({{"a", a}}, [&] { return a.mul(a).t().t().reshape({24}); });
  CHECK(bytes_moved(program) == 4.0 * (24 + 24));
}

TEST_CASE("a backend adds up the work of its replays, of steps that it forgot, too") {
  BackendOptions options;
  const auto made = make_backend(options, TextLog(LogLevel::Error));
  auto& backend = dynamic_cast<TracedBackend&>(*made);
  ClosureQueue queue;
  const auto run = [&](int64_t rows, int times) {
    for (int i = 0; i < times; ++i) {
      const StepBody body = [](const Batch& batch) {
        return Outputs{{"y", batch["x"].mm(batch["x"].t())}};
      };
      backend.run({"train", {}, "fp32"}, {{"x", torch::rand({rows, 8})}}, body, IsDue(), queue);
    }
  };
  run(4, 5);  // three of them are replays
  CHECK(backend.work_done().all_flops() == 3 * 2.0 * 4 * 4 * 8);
  backend.invalidate("a test");
  run(2, 3);
  CHECK(backend.work_done().all_flops() == 3 * 2.0 * 4 * 4 * 8 + 2.0 * 2 * 2 * 8);
}

TEST_SUITE_END();
