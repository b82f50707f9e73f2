#include "models/low_rank_adapters.h"

#include <doctest/doctest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/state_dict.h"
#include "models/model_state.h"

using namespace rondo;

namespace nn = torch::nn;

namespace {

struct Net : nn::Module {
  Net() {
    register_module("embed", embed);
    register_module("conv", conv);
    register_module("attention", attention);
    register_module("fc", fc);
    register_module("rnn", rnn);
  }

  at::Tensor forward(const at::Tensor& tokens) {
    const at::Tensor x = embed(tokens);  // [B, T, 8]
    const at::Tensor y = conv(x.transpose(1, 2)).transpose(0, 1).transpose(0, 2);
    return fc(std::get<0>(attention(y, y, y)));
  }

  nn::Embedding embed{10, 8};
  nn::Conv1d conv{nn::Conv1dOptions(8, 8, 3).padding(1)};
  nn::MultiheadAttention attention{8, 2};
  nn::Linear fc{8, 3};
  nn::LSTM rnn{8, 8};
};

LowRankOptions options_of(std::vector<std::string> modules, double dropout = 0.0) {
  LowRankOptions options;
  options.modules = std::move(modules);
  options.rank = 2;
  options.alpha = 6.0;
  options.dropout = dropout;
  return options;
}

at::Tensor tokens() {
  return at::arange(10).remainder(7).view({2, 5});
}

/// Gives B numbers, so that the adapters do something.
void fill_b(nn::Module& module) {
  const at::NoGradGuard no_grad;
  for (const auto& parameter : module.named_parameters()) {
    if (parameter.key().find("lora_B") != std::string::npos) {
      parameter.value().normal_();
    }
  }
}

}  // namespace

TEST_SUITE_BEGIN("models/low_rank_adapters");

TEST_CASE("a fresh adapter changes nothing, and only adapters are trained") {
  torch::manual_seed(1);
  Net net;
  const at::Tensor before = net.forward(tokens());
  LowRankAdapters adapters(net, options_of({"*"}));
  CHECK(adapters.layers() ==
        std::vector<std::string>{"embed", "conv", "attention", "attention.out_proj", "fc"});
  adapters.install();
  CHECK(equal_bytes(net.forward(tokens()), before));
  adapters.remove();
  for (const auto& parameter : net.named_parameters()) {
    CHECK(parameter.value().requires_grad() ==
          (parameter.key().find("lora_") != std::string::npos));
  }
  CHECK(net.fc->named_parameters()["lora_A"].sizes() == at::IntArrayRef({2, 8}));
  CHECK(net.fc->named_parameters()["lora_B"].sizes() == at::IntArrayRef({3, 2}));
}

TEST_CASE("an adapted layer computes x (W + alpha/rank B A)^T, and its gradients reach A and B") {
  torch::manual_seed(1);
  nn::Sequential net(nn::Linear(4, 3));
  LowRankAdapters adapters(*net, options_of({"0"}));
  fill_b(*net);
  const auto params = net->named_parameters();
  const at::Tensor x = torch::randn({5, 4});
  adapters.install();
  const at::Tensor y = net->forward(x);
  y.square().sum().backward();
  adapters.remove();
  const at::Tensor a = params["0.lora_A"].detach().clone().requires_grad_();
  const at::Tensor b = params["0.lora_B"].detach().clone().requires_grad_();
  const at::Tensor expected =
      x.mm(params["0.weight"].t()) + params["0.bias"] + 3.0 * x.mm(a.t()).mm(b.t());
  expected.square().sum().backward();
  CHECK(at::allclose(y, expected, 1e-5, 1e-6));
  CHECK(at::allclose(params["0.lora_A"].grad(), a.grad(), 1e-4, 1e-5));
  CHECK(at::allclose(params["0.lora_B"].grad(), b.grad(), 1e-4, 1e-5));
  CHECK_FALSE(params["0.weight"].grad().defined());
  CHECK(at::allclose(net->forward(x), x.mm(params["0.weight"].t()) + params["0.bias"]));
}

TEST_CASE("merged weights compute the bytes of adapted ones, and unmerged ones are as before") {
  torch::manual_seed(1);
  Net net;
  LowRankAdapters adapters(net, options_of({"*"}));
  fill_b(net);
  const StateDict before = deep_copy(model_state(net));
  // LibTorch 2.x multiplies matrices in another way where gradients are asked for.
  const at::NoGradGuard no_grad;
  adapters.install();
  const at::Tensor adapted = net.forward(tokens());
  adapters.remove();
  const at::Tensor plain = net.forward(tokens());
  adapters.materialize();
  CHECK(equal_bytes(net.forward(tokens()), adapted));
  adapters.remove();
  adapters.merge();
  CHECK(equal_bytes(net.forward(tokens()), adapted));
  adapters.install();  // does not add them twice
  CHECK(equal_bytes(net.forward(tokens()), adapted));
  adapters.remove();
  CHECK_THROWS_AS(adapters.merge(), UsageError);
  adapters.unmerge();
  CHECK(equal_bytes(net.forward(tokens()), plain));
  CHECK(first_difference(before, model_state(net)) == "");
  CHECK_THROWS_AS(adapters.unmerge(), UsageError);
}

TEST_CASE("dropout hides inputs from the adapter in training, and none in evaluation") {
  torch::manual_seed(1);
  nn::Sequential net(nn::Linear(64, 3));
  LowRankAdapters adapters(*net, options_of({"0"}, 0.5));
  fill_b(*net);
  const at::Tensor eye = torch::eye(64);
  const at::Tensor plain = net->forward(eye);
  adapters.install();
  const at::Tensor hidden = net->forward(eye).sub(plain).abs().sum(1).lt(1e-6);
  CHECK(hidden.sum().item<int64_t>() > 10);
  CHECK(hidden.sum().item<int64_t>() < 54);
  net->eval();
  adapters.install();
  CHECK(net->forward(eye).sub(plain).abs().sum(1).lt(1e-6).sum().item<int64_t>() == 0);
}

TEST_CASE("parameters can be trained whole beside the adapters") {
  nn::Sequential net(nn::Linear(4, 3), nn::Linear(3, 2));
  LowRankOptions options = options_of({"0"});
  options.also_train = {"*.bias"};
  const LowRankAdapters adapters(*net, options);
  const auto params = net->named_parameters();
  CHECK(params["1.bias"].requires_grad());
  CHECK_FALSE(params["1.weight"].requires_grad());
}

TEST_CASE("layers that cannot be adapted, and options out of range, are errors that name them") {
  Net net;
  const auto error_of = [&](const LowRankOptions& options) -> std::string {
    try {
      const LowRankAdapters adapters(net, options);
      return "";
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  const std::string error = error_of(options_of({"rnn"}));
  CHECK(error.find("\"rnn\"") != std::string::npos);
  CHECK(error.find("attention.out_proj") != std::string::npos);
  CHECK(error_of(options_of({})) != "");
  LowRankOptions options = options_of({"fc"});
  options.also_train = {"fc.wieght"};
  CHECK(error_of(options).find("fc.wieght") != std::string::npos);
  options = options_of({"fc"});
  options.rank = 0;
  CHECK(error_of(options) != "");
  options = options_of({"fc"}, 1.0);
  CHECK(error_of(options) != "");
}

TEST_SUITE_END();
