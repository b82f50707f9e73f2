#include "models/builtin/resnet.h"

#include <doctest/doctest.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "core/error.h"
#include "models/model_checks.h"

using namespace rondo;

TEST_SUITE_BEGIN("models/resnet");

TEST_CASE("learns from images") {
  test::check_model(use<ResNet>({1, 4, 3}), test::image_batch({8, 3, 8, 8}, 3), "label", 0.05);
}

TEST_CASE("the default is ResNet-20 with the parameters of the paper") {
  ResNet model({});
  int64_t parameters = 0;
  int64_t weighted_layers = 0;
  for (const auto& item : model.module().named_parameters()) {
    parameters += item.value().numel();
    weighted_layers += item.value().dim() > 1 ? 1 : 0;
  }
  CHECK(weighted_layers == 20);
  // The paper's table 6 says 0.27M. 432 + 13,824 + 50,688 + 202,752 of convolutions, 1,376 of
  // norms, 650 of the head.
  CHECK(parameters == 269722);
  CHECK((model.forward({{"image", torch::rand({2, 3, 32, 32})}})["logits"].sizes() ==
         at::IntArrayRef({2, 10})));
}

TEST_CASE("where the blocks' convolutions add nothing, the shortcuts are all that is left") {
  ResNet model({1, 2, 3});
  torch::nn::Module& module = model.module();
  module.eval();
  const torch::NoGradGuard no_grad;
  for (auto& item : module.named_parameters()) {
    if (item.key().rfind("stage", 0) == 0) {
      item.value().zero_();
    }
  }
  const auto p = module.named_parameters();
  const auto image = torch::rand({2, 3, 9, 9});
  const auto first = torch::conv2d(image, p["conv.weight"], {}, /*stride=*/1, /*padding=*/1);
  constexpr double kEpsilon = 1e-5;  // of the norm, whose running mean is 0 and variance 1
  const auto x = (first / std::sqrt(1.0 + kEpsilon)).relu();
  // Two stages take every second pixel each, and add channels of zeros: 2 become 8.
  const auto pixels = x.slice(2, 0, 9, 4).slice(3, 0, 9, 4).mean({2, 3});
  const auto features = torch::constant_pad_nd(pixels, {0, 6});
  const auto expected = torch::linear(features, p["head.weight"], p["head.bias"]);
  CHECK(model.forward({{"image", image}})["logits"].allclose(expected, 1e-5, 1e-6));
}

TEST_CASE("options out of range are refused") {
  CHECK_THROWS_AS(ResNet({0}), UsageError);
  CHECK_THROWS_AS(ResNet({1, 0}), UsageError);
  CHECK_THROWS_AS(ResNet({1, 4, 0}), UsageError);
  CHECK_THROWS_AS(ResNet({1, 4, 3, 0}), UsageError);
}

TEST_SUITE_END();
