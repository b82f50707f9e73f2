#include <doctest/doctest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn.h>
#include <torch/script.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/torch_compat.h"
#include "support/step_probe.h"
#include "tracing/make_backend.h"

TEST_SUITE_BEGIN("tracing/traced_modules");

using namespace rondo;
using namespace rondo::test;
namespace F = torch::nn::functional;

namespace {

// Trains a module under plain gradient descent; `loss` sees the module and the batch.
template <class Module, class Loss>
StepProbe module_training(Module module, Loss loss) {
  const at::Tensor lr = torch::full({}, 0.05, at::kDouble);
  StepProbe probe;
  probe.state = {{"lr", lr}};
  for (const auto& parameter : module->named_parameters()) {
    probe.state.emplace_back(parameter.key(), parameter.value());
  }
  for (const auto& buffer : module->named_buffers()) {
    probe.state.emplace_back(buffer.key(), buffer.value());
  }
  probe.body = [=](Backend&, const Batch& batch) mutable {
    for (const at::Tensor& parameter : module->parameters()) {
      parameter.mutable_grad().reset();
    }
    const at::Tensor value = loss(module, batch["x"], batch["label"]);
    value.backward();
    descend(module->parameters(), lr);
    return Outputs{{"loss", value}};
  };
  return probe;
}

StepProbe lstm_training() {
  return module_training(
      torch::nn::LSTM(torch::nn::LSTMOptions(3, 5).num_layers(2).batch_first(true)),
      [](auto& lstm, const at::Tensor& x, const at::Tensor&) {
        return std::get<0>(lstm->forward(x.view({-1, 2, 3}))).square().mean();
      });
}

struct OneDnnOff {
  const bool was_on = at::globalContext().userEnabledMkldnn();

  OneDnnOff() { at::globalContext().setUserEnabledMkldnn(false); }

  ~OneDnnOff() { at::globalContext().setUserEnabledMkldnn(was_on); }
};

}  // namespace

TEST_CASE("batch norm: the running statistics move with every replay") {
  CHECK(traced_against_eager([] {
          return module_training(torch::nn::Sequential(torch::nn::Linear(6, 4),
                                                       torch::nn::BatchNorm1d(4),
                                                       torch::nn::ReLU(),
                                                       torch::nn::Linear(4, 3)),
                                 [](auto& net, const at::Tensor& x, const at::Tensor& label) {
                                   return F::cross_entropy(net->forward(x), label);
                                 });
        }) == "");
}

TEST_CASE("one batch norm used twice on the same tensor updates its statistics twice") {
  CHECK(traced_against_eager([] {
          return module_training(torch::nn::BatchNorm1d(6),
                                 [](auto& norm, const at::Tensor& x, const at::Tensor&) {
                                   return (norm->forward(x) + norm->forward(x)).square().mean();
                                 });
        }) == "");
}

TEST_CASE("a convolutional net replays") {
  CHECK(traced_against_eager([] {
          return module_training(
              torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 4, 3).padding(1)),
                                    torch::nn::BatchNorm2d(4),
                                    torch::nn::ReLU(),
                                    torch::nn::MaxPool2d(2),
                                    torch::nn::GroupNorm(2, 4),
                                    torch::nn::AvgPool2d(2),
                                    torch::nn::ConvTranspose2d(4, 2, 2),
                                    torch::nn::AdaptiveAvgPool2d(2),
                                    torch::nn::Upsample(torch::nn::UpsampleOptions()
                                                            .size(std::vector<int64_t>{3, 3})
                                                            .mode(torch::kBilinear)
                                                            .align_corners(false)),
                                    torch::nn::Flatten(),
                                    torch::nn::Linear(18, 3)),
              [](auto& net, const at::Tensor& x, const at::Tensor& label) {
                const at::Tensor image = (x.unsqueeze(2) * x.unsqueeze(1)).unsqueeze(1);
                return F::cross_entropy(net->forward(image.expand({-1, 1, 6, 6})), label);
              });
        }) == "");
}

TEST_CASE("batch norm, ReLU and pooling, which are run as one, replay") {
  CHECK(traced_against_eager([] {
          return module_training(
              torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 4, 3).padding(1)),
                                    torch::nn::BatchNorm2d(4),
                                    torch::nn::ReLU(torch::nn::ReLUOptions(true)),
                                    torch::nn::MaxPool2d(2),
                                    torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 9, 3).padding(1)),
                                    torch::nn::BatchNorm2d(9),
                                    torch::nn::ReLU(),
                                    torch::nn::MaxPool2d(2),
                                    torch::nn::Flatten(),
                                    torch::nn::Linear(81, 3)),
              [](auto& net, const at::Tensor& x, const at::Tensor& label) {
                const at::Tensor image = (x.unsqueeze(2) * x.unsqueeze(1)).unsqueeze(1);
                return F::cross_entropy(net->forward(image.repeat({1, 1, 2, 2})), label);
              });
        }) == "");
}

TEST_CASE("convolutions whose channels fill blocks, one of them with a way around it, replay") {
  struct Net : torch::nn::Module {
    torch::nn::Conv2d first{torch::nn::Conv2dOptions(1, 16, 3).padding(1)};
    torch::nn::BatchNorm2d norm{16};
    torch::nn::Conv2d around{torch::nn::Conv2dOptions(16, 16, 3).padding(1)};
    torch::nn::BatchNorm2d inner{16};
    torch::nn::Conv2d second{torch::nn::Conv2dOptions(16, 32, 3).stride(2).bias(false)};
    torch::nn::Linear linear{128, 3};

    Net() {
      register_module("first", first);
      register_module("norm", norm);
      register_module("around", around);
      register_module("inner", inner);
      register_module("second", second);
      register_module("linear", linear);
    }

    at::Tensor forward(at::Tensor x) {
      x = torch::max_pool2d(torch::relu(norm->forward(first->forward(x))), 2);
      x = x + inner->forward(around->forward(x)).relu_();
      return linear->forward(torch::relu(second->forward(x)).flatten(1));
    }
  };

  CHECK(traced_against_eager([] {
          return module_training(
              std::make_shared<Net>(), [](auto& net, const at::Tensor& x, const at::Tensor& label) {
                const at::Tensor image = (x.unsqueeze(2) * x.unsqueeze(1)).unsqueeze(1);
                return F::cross_entropy(net->forward(image.repeat({1, 1, 2, 2})), label);
              });
        }) == "");
}

TEST_CASE("a two-layer LSTM replays, where LibTorch has oneDNN's own also by that") {
  CHECK(traced_against_eager(&lstm_training) == "");
  const auto bytes_by = [](const BackendOptions& options) {
    return run_probe(&lstm_training, *make_backend(options, TextLog(LogLevel::Error)), 8).bytes;
  };
  BackendOptions eager;
  eager.mode = "eager";
  BackendOptions interpreter;
  interpreter.executor = "interpreter";
  CHECK(first_difference(bytes_by(interpreter), bytes_by(eager)) == "");
  const OneDnnOff off;
  CHECK(traced_against_eager(&lstm_training) == "");
}

TEST_CASE("a GRU with its batch first replays") {
  CHECK(traced_against_eager([] {
          return module_training(
              torch::nn::GRU(torch::nn::GRUOptions(3, 5).batch_first(true)),
              [](auto& gru, const at::Tensor& x, const at::Tensor&) {
                return std::get<0>(gru->forward(x.view({-1, 2, 3}))).square().mean();
              });
        }) == "");
}

TEST_CASE("embedding, embedding bag and layer norm replay") {
  struct NetImpl : torch::nn::Module {
    NetImpl() {
      register_module("embedding", embedding);
      register_module("bag", bag);
      register_module("norm", norm);
    }

    torch::nn::Embedding embedding{3, 4};
    torch::nn::EmbeddingBag bag{3, 4};
    torch::nn::LayerNorm norm{torch::nn::LayerNormOptions({4})};
  };

  CHECK(traced_against_eager([] {
          return module_training(
              std::make_shared<NetImpl>(),
              [](auto& net, const at::Tensor&, const at::Tensor& label) {
                const at::Tensor a = net->embedding->forward(label);
                const at::Tensor b = net->bag->forward(label.view({-1, 2}));
                return (net->norm->forward(a).mean() + b.square().mean()).square();
              });
        }) == "");
}

TEST_CASE("multi-head attention, which compares its inputs, replays") {
  CHECK(traced_against_eager([] {
          return module_training(
              torch::nn::MultiheadAttention(6, 2),
              [](auto& attention, const at::Tensor& x, const at::Tensor&) {
                const at::Tensor tokens = x.view({4, -1, 6});
                return std::get<0>(attention->forward(tokens, tokens, tokens)).square().mean();
              });
        }) == "");
}

TEST_CASE("a transformer layer with dropout replays") {
  CHECK(traced_against_eager([] {
          return module_training(
              torch::nn::TransformerEncoderLayer(
                  torch::nn::TransformerEncoderLayerOptions(6, 2).dim_feedforward(8)),
              [](auto& layer, const at::Tensor& x, const at::Tensor&) {
                return layer->forward(x.view({4, -1, 6})).square().mean();
              });
        }) == "");
}

TEST_CASE("autocast inside the step replays: its casts are in the program") {
  CHECK(traced_against_eager([] {
          return module_training(
              torch::nn::Sequential(
                  torch::nn::Linear(6, 8), torch::nn::ReLU(), torch::nn::Linear(8, 3)),
              [](auto& net, const at::Tensor& x, const at::Tensor& label) {
                compat::set_autocast(at::kCPU, true);
                compat::set_autocast_dtype(at::kCPU, at::kBFloat16);
                const at::Tensor logits = net->forward(x);
                at::autocast::clear_cache();
                compat::set_autocast(at::kCPU, false);
                return F::cross_entropy(logits.to(at::kFloat), label);
              });
        }) == "");
}

TEST_CASE("a TorchScript module with a loop replays") {
  // Without it, the interpreter runs other graphs in its first calls than later.
  torch::jit::getProfilingMode() = false;
  CHECK(traced_against_eager([] {
          torch::jit::Module script("looping");
          script.register_parameter("weight", torch::randn({6, 6}), false);
          script.define(R"(
            def forward(self, x):
                for i in range(3):
                    x = torch.tanh(torch.mm(x, self.weight)) + x * 0.5
                return x
          )");
          const at::Tensor weight = script.attr("weight").toTensor().set_requires_grad(true);
          const at::Tensor lr = torch::full({}, 0.05, at::kDouble);
          StepProbe probe;
          probe.state = {{"weight", weight}, {"lr", lr}};
          probe.body = [=](Backend&, const Batch& batch) mutable {
            weight.mutable_grad().reset();
            const at::Tensor loss = script.forward({batch["x"]}).toTensor().square().mean();
            loss.backward();
            descend({weight}, lr);
            return Outputs{{"loss", loss}};
          };
          return probe;
        }) == "");
}

TEST_CASE("evaluation replays without touching the state") {
  CHECK(traced_against_eager([] {
          auto net = torch::nn::Sequential(torch::nn::Linear(6, 4), torch::nn::BatchNorm1d(4));
          net->eval();
          StepProbe probe;
          for (const auto& buffer : net->named_buffers()) {
            probe.state.emplace_back(buffer.key(), buffer.value());
          }
          for (const auto& parameter : net->named_parameters()) {
            probe.state.emplace_back(parameter.key(), parameter.value());
          }
          probe.key = [](int) { return StepKey{"validate", {}, "fp32"}; };
          probe.body = [=](Backend&, const Batch& batch) mutable {
            const torch::NoGradGuard no_grad;
            return Outputs{{"logits", net->forward(batch["x"])}};
          };
          return probe;
        }) == "");
}

TEST_SUITE_END();
