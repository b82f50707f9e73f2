#include "tracing/recording/origins.h"

#include <doctest/doctest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/script.h>
#include <torch/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "support/step_probe.h"
#include "tracing/find_instruction.h"
#include "tracing/recording/capture.h"

TEST_SUITE_BEGIN("tracing/recording/origins");

using namespace rondo;
using namespace rondo::test;

namespace {

StepProgram capture(const std::function<Outputs(const Batch&)>& body, const CapturedState& state) {
  const Batch batch = random_batch(0);
  const StepBody step = body;
  const IsDue is_due;
  ClosureQueue queue;
  const std::function<CapturedState()> provide = [=] { return state; };
  BodyRequests* requests = nullptr;
  return capture_step("test", {batch, step, is_due, queue, provide, requests}).program;
}

struct Net {
  torch::nn::Linear first{6, 5};
  torch::nn::Linear second{5, 3};

  CapturedState state() const {
    return {{"model.first.weight", first->weight},
            {"model.first.bias", first->bias},
            {"model.block.second.weight", second->weight},
            {"model.block.second.bias", second->bias}};
  }
};

__attribute__((noinline)) at::Tensor squash(const at::Tensor& x) {
  at::Tensor y = x.tanh();
  CHECK(y.defined());  // or else the call of tanh would take this one's place on the stack
  return y;
}

const Origin& origin_of(const StepProgram& program, std::string_view op) {
  return program.origins[static_cast<size_t>(find(program, op).origin)];
}

StepProgram program_of(Net& net) {
  const auto body = [&](const Batch& batch) {
    const at::Tensor hidden = squash(net.first->forward(batch["x"]));
    const at::Tensor loss = net.second->forward(hidden).exp().sum();
    loss.backward();
    const at::NoGradGuard no_grad;
    net.second->bias.sub_(net.second->bias.grad());
    return Outputs{{"loss", loss}};
  };
  return capture(body, net.state());
}

}  // namespace

TEST_CASE("an instruction knows its module: by its parameters, or after whom it comes") {
  Net net;
  const StepProgram program = program_of(net);
  CHECK(origin_of(program, "aten::addmm").module == "first");
  CHECK(origin_of(program, "aten::tanh").module == "after first");
  CHECK(origin_of(program, "aten::exp").module == "after block.second");
  CHECK(origin_of(program, "aten::exp").phase == StepPhase::Forward);
}

TEST_CASE("a backward instruction has the module of the operator whose gradient it computes") {
  Net net;
  const StepProgram program = program_of(net);
  const Origin& tanh = origin_of(program, "aten::tanh_backward");
  CHECK(tanh.phase == StepPhase::Backward);
  CHECK(tanh.node == "TanhBackward0");
  CHECK(tanh.module == "after first");
  CHECK(origin_of(program, "aten::mm").module == "block.second");
  // The bias's gradient is summed up when the node is done.
  CHECK(origin_of(program, "aten::sum.dim_IntList").phase == StepPhase::Backward);
  CHECK(origin_of(program, "aten::sum.dim_IntList").module == "block.second");
  CHECK(origin_of(program, "aten::mm").node == "AddmmBackward0");
}

TEST_CASE("what comes after backward belongs to the update") {
  Net net;
  const StepProgram program = program_of(net);
  const Origin& update = origin_of(program, "aten::sub_.Tensor");
  CHECK(update.phase == StepPhase::Update);
  CHECK(update.module == "block.second");
}

TEST_CASE("the code is known, for a gradient the code that it is the gradient of") {
  Net net;
  const StepProgram program = program_of(net);
  for (const char* op : {"aten::tanh", "aten::tanh_backward"}) {
    const std::string source = source_of(program, find(program, op));
    CHECK_MESSAGE(source.find("squash") != std::string::npos, source);
  }
}

TEST_CASE("in TorchScript the line is that of the script") {
  torch::jit::Module script("Scripted");
  script.define(R"(
def forward(self, x):
    return torch.log(x)
)");
  const StepProgram program = capture(
      [&](const Batch& batch) {
        return Outputs{{"loss", script.forward({batch["x"]}).toTensor()}};
      },
      {});
  const std::string source = source_of(program, find(program, "aten::log"));
  CHECK_MESSAGE(source.find("forward") != std::string::npos, source);
  CHECK_MESSAGE(source.find(":3") != std::string::npos, source);
}

TEST_SUITE_END();
