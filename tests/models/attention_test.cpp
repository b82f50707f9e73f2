#include "models/blocks/attention.h"

#include <doctest/doctest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>

using namespace rondo;

TEST_SUITE_BEGIN("models/attention");

TEST_CASE("rotary positions by hand, and products that depend on distances alone") {
  torch::manual_seed(2);
  const auto x = torch::randn({1, 1, 3, 4}, torch::kDouble);
  const auto turned = rondo::detail::rotate(x, 5, 100.0);
  for (int64_t t = 0; t < 3; ++t) {
    for (int64_t i = 0; i < 2; ++i) {
      const double angle =
          static_cast<double>(t + 5) * std::pow(100.0, -0.5 * static_cast<double>(i));
      const double a = x[0][0][t][i].item<double>();
      const double b = x[0][0][t][i + 2].item<double>();
      // The angles are float32.
      CHECK(turned[0][0][t][i].item<double>() ==
            doctest::Approx(a * std::cos(angle) - b * std::sin(angle)).epsilon(1e-5));
      CHECK(turned[0][0][t][i + 2].item<double>() ==
            doctest::Approx(b * std::cos(angle) + a * std::sin(angle)).epsilon(1e-5));
    }
  }
  const auto products = [&](int64_t first) {
    const auto r = rondo::detail::rotate(x, first, 100.0);
    return torch::matmul(r, r.transpose(-2, -1));
  };
  CHECK(products(0).allclose(products(7), 1e-4, 1e-5));
}

TEST_CASE("linear biases by hand, for any number of heads and for tokens that follow others") {
  const auto slopes = [](int64_t heads) {
    // The score of the token before the last one.
    const at::Tensor biases = rondo::detail::linear_biases(heads, 0, 2, torch::zeros({1}));
    return biases.index({at::indexing::Slice(), 1, 0}).neg();
  };
  CHECK(slopes(2).equal(torch::tensor({0.0625F, 0.00390625F})));
  CHECK(slopes(4).equal(torch::tensor({0.25F, 0.0625F, 0.015625F, 0.00390625F})));
  // Three heads: two of two, and the first of four.
  CHECK(slopes(3).equal(torch::tensor({0.0625F, 0.00390625F, 0.25F})));
  const at::Tensor all = rondo::detail::linear_biases(2, 0, 3, torch::zeros({1}));
  CHECK(all[0][2].equal(torch::tensor({-0.125F, -0.0625F, 0.0F})));
  CHECK(all[0][0][1].item<double>() == -std::numeric_limits<double>::infinity());
  const at::Tensor last = rondo::detail::linear_biases(2, 2, 1, torch::zeros({1}));
  CHECK(last.squeeze(1).equal(all.select(1, 2)));
}

TEST_CASE("a repeated head stands beside itself") {
  const auto x = torch::arange(6).view({1, 2, 3, 1});
  const auto repeated = rondo::detail::repeat_heads(x, 2);
  for (int64_t head = 0; head < 4; ++head) {
    CHECK(repeated[0][head].equal(x[0][head / 2]));
  }
}

TEST_CASE("a hidden key counts nothing, and without a mask all count") {
  torch::manual_seed(2);
  const auto q = torch::randn({1, 1, 2, 4});
  const auto v = torch::randn({1, 1, 2, 4});
  const auto mask = torch::tensor({false, true, false, false}).view({2, 2});
  const auto masked = rondo::detail::attend(q, q, v, mask, 0.0);
  CHECK(masked[0][0].allclose(v[0][0][0]));
  const auto open = rondo::detail::attend(q, q, v, {}, 0.0);
  CHECK(open[0][1].equal(masked[0][1]));
  CHECK(!open[0][0].equal(masked[0][0]));
}

TEST_SUITE_END();
