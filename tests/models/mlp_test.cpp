#include "models/builtin/mlp.h"

#include <doctest/doctest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "metrics/metric.h"
#include "models/model_checks.h"

using namespace rondo;

TEST_SUITE_BEGIN("models/mlp");

TEST_CASE("learns from images with each activation") {
  const Batch batch = test::image_batch({8, 1, 4, 4}, 3);
  for (const char* activation : {"relu", "gelu", "tanh"}) {
    CAPTURE(activation);
    test::check_model(use<Mlp>({{16, 12, 3}, activation}), batch, "label", 0.5);
  }
}

TEST_CASE("its forward is the plain composition of its layers") {
  Mlp mlp({{4, 5, 3}, "tanh"});
  const auto p = mlp.module().named_parameters();
  const Batch batch = test::image_batch({2, 2, 2}, 3);
  const auto hidden =
      torch::tanh(torch::linear(batch["image"].flatten(1), p["layer0.weight"], p["layer0.bias"]));
  const auto logits = torch::linear(hidden, p["layer1.weight"], p["layer1.bias"]);
  const Outputs outputs = mlp.forward(batch);
  CHECK(outputs["logits"].equal(logits));
  CHECK(outputs["loss"].equal(torch::nn::functional::cross_entropy(logits, batch["label"])));
}

TEST_CASE("dropout works in train mode only") {
  Mlp mlp({{16, 64, 3}, "relu", 0.5});
  test::check_dropout(mlp, test::image_batch({4, 16}, 3));
}

TEST_CASE("input and label may have other names, and accuracy follows the label") {
  Mlp mlp({{4, 3}, "relu", 0.0, "features", "kind"});
  const Batch batch = {{"features", torch::rand({2, 4})}, {"kind", torch::tensor({0, 2})}};
  const Outputs outputs = mlp.forward(batch);
  CHECK(outputs.find("loss") != nullptr);
  const auto metrics = mlp.metrics();
  REQUIRE(metrics.size() == 1);
  const auto accuracy = metrics[0].make();
  accuracy->update(outputs, batch);
  CHECK(accuracy->compute() >= 0.0);
}

TEST_CASE("options out of range are refused") {
  CHECK_THROWS_AS(Mlp({{784}}), UsageError);
  CHECK_THROWS_AS(Mlp({{784, 0}}), UsageError);
  CHECK_THROWS_AS(Mlp({{784, 10}, "swish"}), UsageError);
  CHECK_THROWS_AS(Mlp({{784, 10}, "relu", 1.0}), UsageError);
}

TEST_SUITE_END();
