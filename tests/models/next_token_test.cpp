#include "models/blocks/next_token.h"

#include <torch/types.h>

#include <doctest/doctest.h>

#include <cmath>

#include "core/random.h"

using namespace rondo;

TEST_SUITE_BEGIN("models/next_token");

TEST_CASE("tokens are drawn as often as the softmax says") {
  constexpr int kDraws = 20000;
  constexpr double kTolerance = 0.02;  // more than five standard errors
  const auto logits = torch::log(torch::tensor({0.1, 0.6, 0.3}));
  KeyedRandom random(5);
  std::vector<double> share(3);
  for (int i = 0; i < kDraws; ++i) {
    share.at(static_cast<size_t>(rondo::detail::choose_token(logits, 1.0, random))) += 1.0 / kDraws;
  }
  CHECK(std::abs(share[0] - 0.1) < kTolerance);
  CHECK(std::abs(share[1] - 0.6) < kTolerance);
  CHECK(std::abs(share[2] - 0.3) < kTolerance);
}

TEST_CASE("temperature 0 takes the likeliest, and nearly 0 draws it") {
  const auto logits = torch::tensor({0.0, 2.0, 1.0});
  KeyedRandom random(5);
  CHECK(rondo::detail::choose_token(logits, 0.0, random) == 1);
  CHECK(rondo::detail::choose_token(logits, 1e-3, random) == 1);
}

TEST_SUITE_END();
