#include "metrics/regression_error.h"

#include <torch/types.h>

#include <doctest/doctest.h>

#include <cmath>

#include "core/error.h"

using namespace rondo;

TEST_SUITE_BEGIN("metrics/regression_error");

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

TEST_CASE("errors of other kinds are those computed by hand") {
  const auto output = torch::tensor({2.5, 0.0, 2.0, 8.0});
  const auto target = torch::tensor({3.0, -0.5, 2.0, 7.0});
  const auto value_of = [&](Metric& metric) {
    metric.update({{"logits", output.slice(0, 0, 3)}}, {{"target", target.slice(0, 0, 3)}});
    metric.update({{"logits", output.slice(0, 3)}}, {{"target", target.slice(0, 3)}});
    return metric.compute();
  };
  RootMeanSquaredError root({});
  CHECK(value_of(root) == doctest::Approx(std::sqrt(1.5 / 4)));
  MeanAbsoluteError absolute({});
  CHECK(value_of(absolute) == doctest::Approx(2.0 / 4));
  R2 r2({});
  CHECK(value_of(r2) == doctest::Approx(0.9486081370449679));  // scikit-learn's example
}

TEST_CASE("r2 is exact for targets far from zero, and NaN for constant ones") {
  const auto target = torch::arange(100, torch::kDouble).mul(1e-3).add(1e8);
  R2 r2({});
  r2.update({{"logits", target.add(1e-4)}}, {{"target", target}});
  CHECK(r2.compute() == doctest::Approx(1 - 1e-8 / (1e-6 * (10000.0 - 1) / 12)).epsilon(1e-6));
  R2 in_batches({});
  for (int64_t i = 0; i < 100; i += 7) {
    const at::Tensor batch = target.slice(0, i, i + 7);
    in_batches.update({{"logits", batch.add(1e-4)}}, {{"target", batch}});
  }
  CHECK(in_batches.compute() == doctest::Approx(r2.compute()).epsilon(1e-6));
  R2 constant({});
  constant.update({{"logits", torch::ones({4})}}, {{"target", torch::ones({4})}});
  CHECK(std::isnan(constant.compute()));
}

TEST_SUITE_END();
