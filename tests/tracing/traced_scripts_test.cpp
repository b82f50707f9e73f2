#include <ATen/CPUGeneratorImpl.h>
#include <doctest/doctest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <fmt/format.h>

#include <string>
#include <vector>

#include "support/campaign.h"
#include "support/python.h"
#include "support/step_probe.h"

TEST_SUITE_BEGIN("tracing/traced_scripts");

using namespace rondo;
using namespace rondo::test;

namespace {

// A module as Python makes it, and the sizes of its input.
struct PythonModule {
  const char* name;
  const char* code;
  std::vector<int64_t> sizes;
};

const std::vector<PythonModule> kOfTorch = {
    {"lstm", "First(nn.LSTM(4, 6, num_layers=2, batch_first=True))", {3, 5, 4}},
    {"gru", "First(nn.GRU(4, 6, batch_first=True))", {3, 5, 4}},
    {"encoder", "nn.TransformerEncoderLayer(8, 2, 16)", {5, 3, 8}},
    {"transformer", "Twice(nn.Transformer(8, 2, 1, 1, 16))", {5, 3, 8}},
    {"attention", "Thrice(nn.MultiheadAttention(8, 2))", {5, 3, 8}},
    {"view", "View()", {4, 2, 3}},
};

const std::vector<PythonModule> kOfTorchvision = {
    {"vit", "models.VisionTransformer(16, 8, 1, 2, 16, 32, num_classes=3)", {2, 3, 16, 16}},
    {"shufflenet", "models.ShuffleNetV2([1, 1, 1], [8, 8, 16, 32, 32], 3)", {2, 3, 32, 32}},
};

const std::vector<PythonModule> kLarge = {
    {"vit_b_16", "models.VisionTransformer(32, 8, 2, 4, 64, 128)", {2, 3, 32, 32}},
    {"swin_t", "models.swin_t()", {2, 3, 64, 64}},
    {"convnext_tiny", "models.convnext_tiny()", {2, 3, 64, 64}},
    {"efficientnet_b0", "models.efficientnet_b0()", {2, 3, 64, 64}},
    {"shufflenet_v2_x1_0", "models.shufflenet_v2_x1_0()", {2, 3, 64, 64}},
    {"resnet18", "models.resnet18()", {2, 3, 64, 64}},
    {"resnext50", "models.resnext50_32x4d()", {2, 3, 64, 64}},
    {"mobilenet_v2", "models.mobilenet_v2()", {2, 3, 64, 64}},
    {"mobilenet_v3_small", "models.mobilenet_v3_small()", {2, 3, 64, 64}},
    {"densenet121", "models.densenet121()", {2, 3, 64, 64}},
    {"squeezenet1_1", "models.squeezenet1_1()", {2, 3, 64, 64}},
    {"mnasnet0_5", "models.mnasnet0_5()", {2, 3, 64, 64}},
    {"regnet_y_400mf", "models.regnet_y_400mf()", {2, 3, 64, 64}},
    {"vgg11_bn", "models.vgg11_bn()", {2, 3, 64, 64}},
    {"alexnet", "models.alexnet()", {2, 3, 64, 64}},
    {"googlenet", "models.googlenet(aux_logits=False, init_weights=False)", {2, 3, 64, 64}},
};

// Writes the modules, in training mode, as torch.jit.trace sees them.
std::string script_of(const std::vector<PythonModule>& modules) {
  std::string script = R"PY(
import sys
import torch
from torch import nn
try:
    from torchvision import models
except ImportError:
    models = None
torch.manual_seed(0)

class First(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        return self.inner(x)[0]

class Twice(First):
    def forward(self, x):
        return self.inner(x, x * 0.5)

class Thrice(First):
    def forward(self, x):
        return self.inner(x, x, x)[0]

class View(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 3)
    def forward(self, x):
        n, c = x.shape[0], x.shape[1] * x.shape[2]
        return self.inner(x.view(n, c // 2 * 2)).reshape(n * 3 // 3, -1) / n ** 0.5

def write(name, module, sizes):
    traced = torch.jit.trace(module.train(), torch.randn(sizes), check_trace=False)
    traced.save(sys.argv[1] + '/' + name + '.pt')

)PY";
  for (const PythonModule& module : modules) {
    std::string sizes;
    for (const int64_t size : module.sizes) {
      sizes += std::to_string(size) + ",";
    }
    script += fmt::format("write('{}', {}, ({}))\n", module.name, module.code, sizes);
  }
  return script;
}

// Plain gradient descent on the mean of squares of what the file's module gives.
StepProbe script_training(const std::string& path, const std::vector<int64_t>& sizes) {
  auto module = torch::jit::load(path);
  const at::Tensor lr = torch::full({}, 0.01, at::kDouble);
  StepProbe probe;
  probe.state = {{"lr", lr}};
  std::vector<at::Tensor> parameters;
  for (const auto& parameter : module.named_parameters()) {
    probe.state.emplace_back(parameter.name, parameter.value);
    parameters.push_back(parameter.value);
  }
  for (const auto& buffer : module.named_buffers()) {
    probe.state.emplace_back(buffer.name, buffer.value);
  }
  probe.batch = [=](int step) {
    const auto numbers = at::detail::createCPUGenerator(static_cast<uint64_t>(100 + step));
    return Batch{{"x", at::randn(sizes, numbers, at::TensorOptions())}};
  };
  probe.body = [=](Backend&, const Batch& batch) mutable {
    const torch::jit::GraphOptimizerEnabledGuard no_optimisation(false);
    for (const at::Tensor& parameter : parameters) {
      parameter.mutable_grad().reset();
    }
    const at::Tensor value = module.forward({batch["x"]}).toTensor().square().mean();
    value.backward();
    descend(parameters, lr);
    return Outputs{{"loss", value}};
  };
  return probe;
}

void check_that_all_train(const std::vector<PythonModule>& modules, const std::string& library) {
  if (skips_without(library)) {
    return;
  }
  const TempDir dir;
  REQUIRE(runs_in_python(library, dir, script_of(modules)));
  for (const PythonModule& module : modules) {
    const std::string path = dir.path() / (module.name + std::string(".pt"));
    CAPTURE(std::string(module.name));
    CHECK(traced_against_eager([&] { return script_training(path, module.sizes); }, 5) == "");
  }
}

}  // namespace

TEST_CASE("modules of torch.nn that torch.jit.trace wrote are replayed") {
  check_that_all_train(kOfTorch, "torch");
}

TEST_CASE("models of torchvision that torch.jit.trace wrote are replayed") {
  check_that_all_train(kOfTorchvision, "torchvision");
}

TEST_CASE("large models of torchvision are replayed" * doctest::skip(campaign_scale() < 2)) {
  check_that_all_train(kLarge, "torchvision");
}

TEST_SUITE_END();
