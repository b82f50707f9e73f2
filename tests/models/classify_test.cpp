#include "models/internal/classify.h"

#include <torch/nn/functional/loss.h>
#include <torch/types.h>

#include <doctest/doctest.h>

using namespace rondo;

TEST_SUITE_BEGIN("models/classify");

TEST_CASE("every token of a sequence is one row") {
  const auto logits = torch::randn({2, 3, 5});
  const auto label = torch::randint(5, {2, 3}, torch::kLong);
  const auto expected =
      torch::nn::functional::cross_entropy(logits.reshape({6, 5}), label.reshape({6}));
  const Outputs outputs = rondo::detail::classify(logits, {{"targets", label}}, "targets");
  CHECK(outputs["loss"].equal(expected));
  CHECK(outputs["logits"].is_same(logits));
}

TEST_SUITE_END();
