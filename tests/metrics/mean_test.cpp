#include "metrics/mean.h"

#include <torch/types.h>

#include <doctest/doctest.h>

#include <cmath>

#include "core/error.h"

using namespace rondo;

TEST_SUITE_BEGIN("metrics/mean");

TEST_CASE("uneven batches count by their samples") {
  Mean mean({});
  CHECK(mean.name() == "loss");
  CHECK(std::isnan(mean.compute()));
  mean.update({{"loss", torch::full({}, 1.0)}}, {{"x", torch::zeros({3, 2})}});
  mean.update({{"loss", torch::full({}, 5.0)}}, {{"x", torch::zeros({1, 2})}});
  CHECK(mean.compute() == 2.0);
  mean.reset();
  CHECK(std::isnan(mean.compute()));
}

TEST_CASE("the state is the same float64 tensors throughout, changed in place") {
  Mean mean({"error"});
  CHECK(mean.name() == "error");
  const auto before = mean.state();
  mean.update({{"error", torch::full({}, 1.5).requires_grad_()}}, {{"x", torch::zeros({2})}});
  const auto after = mean.state();
  REQUIRE(before.size() == after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    CHECK(before[i].first == after[i].first);
    CHECK(before[i].second.is_same(after[i].second));
    CHECK((after[i].second.scalar_type() == torch::kDouble));
    CHECK(after[i].second.dim() == 0);
    CHECK(!after[i].second.requires_grad());
  }
  CHECK(before[0].second.item<double>() == 3.0);
}

TEST_CASE("an output with dimensions or without its name is refused") {
  Mean mean({});
  const Batch batch = {{"x", torch::zeros({2})}};
  CHECK_THROWS_AS(mean.update({{"loss", torch::zeros({1})}}, batch), ShapeError);
  CHECK_THROWS_AS(mean.update({{"logits", torch::zeros({})}}, batch), DataError);
}

TEST_SUITE_END();
