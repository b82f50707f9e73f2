#include "metrics/mean_squared_error.h"

#include <torch/types.h>

#include <doctest/doctest.h>

#include <cmath>

#include "core/error.h"

using namespace rondo;

TEST_SUITE_BEGIN("metrics/mean_squared_error");

TEST_CASE("every element counts alike, whatever the batches") {
  MeanSquaredError error({"y", "wanted"});
  CHECK(error.name() == "mean_squared_error");
  CHECK(std::isnan(error.compute()));
  error.update({{"y", torch::full({3, 2}, 2.0).requires_grad_()}},
               {{"wanted", torch::zeros({3, 2})}});
  error.update({{"y", torch::full({1, 2}, 6.0)}}, {{"wanted", torch::full({1, 2}, 2.0)}});
  CHECK(error.compute() == (6 * 4.0 + 2 * 16.0) / 8.0);
  error.reset();
  CHECK(std::isnan(error.compute()));
}

TEST_CASE("the state is changed in place") {
  MeanSquaredError error({});
  const auto before = error.state();
  error.update({{"logits", torch::ones({2})}}, {{"target", torch::zeros({2})}});
  const auto after = error.state();
  REQUIRE(after.size() == before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    CHECK(after[i].second.is_same(before[i].second));
  }
}

TEST_CASE("shapes that differ are refused, not broadcast") {
  MeanSquaredError error({});
  CHECK_THROWS_AS(error.update({{"logits", torch::ones({2, 1})}}, {{"target", torch::zeros({2})}}),
                  ShapeError);
}

TEST_SUITE_END();
