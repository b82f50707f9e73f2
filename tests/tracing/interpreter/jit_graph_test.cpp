#include "tracing/interpreter/jit_graph.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "core/state_dict.h"
#include "tracing/interpreter/jit_executor.h"
#include "tracing/recording/dispatcher.h"
#include "tracing/recording/recorder.h"

TEST_SUITE_BEGIN("tracing/interpreter/jit_graph");

using namespace rondo;

namespace {

Batch batch_of(uint64_t seed) {
  return {{"x", torch::rand({4, 3}, at::detail::createCPUGenerator(seed))}};
}

StepProgram record(const std::function<at::Tensor(const at::Tensor&)>& body) {
  register_with_dispatcher();
  const Batch batch = batch_of(1);
  Recorder recorder("test", batch, [] { return CapturedState(); });
  Outputs outputs;
  {
    const RecordingScope scope(recorder);
    outputs.set("y", body(batch["x"]));
  }
  return recorder.finish(outputs);
}

struct Case {
  const char* name;
  std::function<at::Tensor(const at::Tensor&)> body;
};

}  // namespace

TEST_CASE("every kind of argument and result runs as it was recorded") {
  const std::vector<Case> cases = {
      {"lists of tensors, and lists as results",
       [](const at::Tensor& x) { return torch::cat(x.unbind(1), 0) + x.split(2, 0)[1].sum(); }},
      {"lists with holes",
       [](const at::Tensor& x) {
         return x.index({torch::indexing::Slice(), torch::tensor({2, 0})});
       }},
      {"undefined tensors in and out",
       [](const at::Tensor& x) {
         const auto grads = at::native_layer_norm_backward(x,
                                                           x.exp(),
                                                           {3},
                                                           torch::zeros({4, 1}),
                                                           torch::ones({4, 1}),
                                                           {},
                                                           {},
                                                           {true, false, false});
         CHECK_FALSE(std::get<1>(grads).defined());
         return std::get<0>(grads);
       }},
      {"overloads of one name",
       [](const at::Tensor& x) {
         return x.add(1).add(x).sum(0).sum().add(x.max()).add(std::get<0>(x.max(1)).mean());
       }},
      {"lists of host numbers, dtypes, devices, texts",
       [](const at::Tensor& x) {
         std::vector<at::Tensor> parts = {x.clone(), x.clone()};
         torch::_foreach_add_(parts, std::vector<at::Scalar>{0.5, 2.0});
         const at::Tensor ratio = x.div(x + 1, "floor") + torch::gelu(x, "tanh");
         return (parts[0] + parts[1] + ratio).to(at::kDouble).mean(at::IntArrayRef({0, 1}), true);
       }},
      {"a view as another dtype",
       [](const at::Tensor& x) {
         return x.clone().view(at::kInt).bitwise_and_(-2).view(at::kFloat);
       }},
      {"infinities",
       [](const at::Tensor& x) {
         return x.masked_fill(x > 0.5, -std::numeric_limits<double>::infinity()).exp();
       }},
  };
  for (const Case& probe : cases) {
    CAPTURE(std::string(probe.name));
    const StepProgram program = record(probe.body);
    JitExecutor executor(program);
    for (uint64_t seed = 2; seed < 7; ++seed) {
      const Batch batch = batch_of(seed);
      CHECK(equal_bytes(executor.run(batch, kAlwaysDue).at(0), probe.body(batch["x"])));
    }
  }
}

TEST_CASE(
    "inputs are the batch and the captured state that is used; the text shows the operators") {
  register_with_dispatcher();
  const Batch batch = batch_of(1);
  const at::Tensor used = torch::ones({3});
  const at::Tensor unused = torch::ones({7});
  Recorder recorder("test", batch, [&] {
    return CapturedState{{"unused", unused}, {"used", used}};
  });
  Outputs outputs;
  {
    const RecordingScope scope(recorder);
    outputs.set("y", batch["x"] * used);
  }
  const StepProgram program = recorder.finish(outputs);
  const JitGraph graph = to_jit_graph(program);
  CHECK(graph.inputs.size() == 1);
  REQUIRE(graph.captured.size() == 1);
  CHECK(program.slots[static_cast<size_t>(graph.captured[0])].name == "used");
  CHECK(graph.outputs.size() == 1);
  CHECK(to_text(graph).find("aten::mul") != std::string::npos);
}

TEST_SUITE_END();
