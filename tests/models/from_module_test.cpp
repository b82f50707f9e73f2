#include "models/from_module.h"

#include <doctest/doctest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "core/error.h"
#include "metrics/metric.h"
#include "models/model_checks.h"

using namespace rondo;

TEST_SUITE_BEGIN("models/from_module");

namespace {

torch::nn::Sequential softmax_regression() {
  return torch::nn::Sequential(torch::nn::Flatten(), torch::nn::Linear(16, 3));
}

}  // namespace

TEST_CASE("a Sequential and cross entropy are a model that learns") {
  const auto factory = from_module(softmax_regression, "image", cross_entropy("label"));
  CHECK(factory.name() == "from_module");
  test::check_model(factory, test::image_batch({8, 1, 4, 4}, 3), "label", 1.0);
  const auto metrics = factory.make()->metrics();
  REQUIRE(metrics.size() == 1);
  CHECK(metrics[0].make()->name() == "accuracy");
}

TEST_CASE("a shared_ptr to a module will do") {
  const auto factory = from_module([] { return std::make_shared<torch::nn::LinearImpl>(16, 3); },
                                   "image",
                                   cross_entropy("label"));
  test::check_model(factory, test::image_batch({8, 16}, 3), "label", 1.0);
}

TEST_CASE("each make builds another module") {
  const auto factory = from_module(softmax_regression, "image", cross_entropy("label"));
  const auto a = factory.make();
  const auto b = factory.make();
  CHECK(&a->module() != &b->module());
  CHECK(&a->module() == &a->module());
}

TEST_CASE("mse compares equal shapes and refuses to broadcast") {
  const auto factory = from_module([] { return torch::nn::Linear(2, 1); }, "x", mse("y"));
  const auto model = factory.make();
  REQUIRE(model->metrics().size() == 1);
  CHECK(model->metrics()[0].make()->name() == "mean_squared_error");
  const auto x = torch::rand({4, 2});
  const auto y = torch::rand({4, 1});
  const Outputs outputs = model->forward({{"x", x}, {"y", y}});
  CHECK(outputs["loss"].equal((outputs["logits"] - y).square().mean()));
  CHECK(model->forward({{"x", x}}).find("loss") == nullptr);
  CHECK_THROWS_AS(model->forward({{"x", x}, {"y", torch::rand({4})}}), ShapeError);
}

TEST_CASE("a loss of one's own sees output and batch") {
  const auto factory = from_module([] { return torch::nn::Linear(2, 1); },
                                   "x",
                                   [](const at::Tensor& output, const Batch& batch) {
                                     return (output - batch["x"]).abs().sum();
                                   });
  const auto x = torch::rand({4, 2});
  const Outputs outputs = factory.make()->forward({{"x", x}});
  CHECK(outputs["loss"].equal((outputs["logits"] - x).abs().sum()));
}

TEST_SUITE_END();
