#include "models/builtin/cnn.h"

#include <doctest/doctest.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "models/model_checks.h"

using namespace rondo;

TEST_SUITE_BEGIN("models/cnn");

namespace {

Cnn::Options small() {
  Cnn::Options options;
  options.image_size = 9;  // halved to 4, then to 2
  options.classes = 3;
  options.widths = {4, 6};
  return options;
}

}  // namespace

TEST_CASE("learns from images") {
  test::check_model(use<Cnn>(small()), test::image_batch({8, 1, 9, 9}, 3), "label", 0.1);
}

TEST_CASE("gives a row of logits an image, by its defaults and for other images") {
  Cnn defaults({});
  CHECK((defaults.forward({{"image", torch::rand({2, 1, 28, 28})}})["logits"].sizes() ==
         at::IntArrayRef({2, 10})));
  Cnn::Options options = small();
  options.channels = 3;
  Cnn cnn(options);
  CHECK((cnn.forward({{"image", torch::rand({5, 3, 9, 9})}})["logits"].sizes() ==
         at::IntArrayRef({5, 3})));
}

TEST_CASE("batch norm gathers statistics in train mode only") {
  Cnn cnn(small());
  const Batch batch = test::image_batch({4, 1, 9, 9}, 3);
  const auto mean = cnn.module().named_buffers()["norm0.running_mean"];
  cnn.module().eval();
  cnn.forward(batch);
  CHECK(mean.equal(torch::zeros({4})));
  cnn.module().train();
  cnn.forward(batch);
  CHECK(!mean.equal(torch::zeros({4})));
}

TEST_CASE("dropout works in train mode only") {
  Cnn::Options options = small();
  options.dropout = 0.5;
  Cnn cnn(options);
  test::check_dropout(cnn, test::image_batch({4, 1, 9, 9}, 3));
}

TEST_CASE("options out of range are refused") {
  const auto refuses = [](auto change) {
    Cnn::Options options = small();
    change(options);
    CHECK_THROWS_AS(Cnn{options}, UsageError);
  };
  refuses([](auto& o) { o.channels = 0; });
  refuses([](auto& o) { o.image_size = 3; });
  refuses([](auto& o) { o.classes = 0; });
  refuses([](auto& o) { o.widths = {}; });
  refuses([](auto& o) { o.widths = {4, 0}; });
  refuses([](auto& o) { o.dropout = 1.0; });
}

TEST_SUITE_END();
