#include "models/resnet.h"

#include <doctest/doctest.h>

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
  for (const auto& item : model.named_parameters()) {
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

TEST_CASE("where a block's convolutions add nothing, the shortcut is all that is left") {
  ResNet::BlockImpl block(2, 4);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : block.parameters()) {
    parameter.zero_();
  }
  const auto x = torch::rand({1, 2, 5, 5});
  const auto y = block.forward(x);
  REQUIRE((y.sizes() == at::IntArrayRef({1, 4, 3, 3})));
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t column = 0; column < 3; ++column) {
      CHECK(y[0][1][row][column].equal(x[0][1][2 * row][2 * column]));
    }
  }
  CHECK(y.narrow(1, 2, 2).equal(torch::zeros({1, 2, 3, 3})));
}

TEST_CASE("options out of range are refused") {
  CHECK_THROWS_AS(ResNet({0}), UsageError);
  CHECK_THROWS_AS(ResNet({1, 0}), UsageError);
  CHECK_THROWS_AS(ResNet({1, 4, 0}), UsageError);
  CHECK_THROWS_AS(ResNet({1, 4, 3, 0}), UsageError);
}

TEST_SUITE_END();
