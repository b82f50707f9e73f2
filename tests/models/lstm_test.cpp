#include "models/builtin/lstm.h"

#include <doctest/doctest.h>
#include <torch/nn/modules/rnn.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "models/model_checks.h"

using namespace rondo;

TEST_SUITE_BEGIN("models/lstm");

TEST_CASE("learns from tokens") {
  test::check_model(use<Lstm>({2, 8, 5}), test::token_batch(2, 4, 5), "targets", 2.0);
}

TEST_CASE("equals torch's LSTM with the same weights") {
  constexpr double kTolerance = 1e-5;  // float32, sums in another order
  torch::manual_seed(3);
  Lstm lstm({2, 8, 5});
  const auto p = lstm.module().named_parameters();
  torch::nn::LSTM reference(torch::nn::LSTMOptions(8, 8).num_layers(2).batch_first(true));
  const torch::NoGradGuard no_grad;
  auto theirs = reference->named_parameters();
  for (const std::string layer : {"0", "1"}) {
    theirs["weight_ih_l" + layer].copy_(p["input" + layer + ".weight"]);
    theirs["bias_ih_l" + layer].copy_(p["input" + layer + ".bias"]);
    theirs["weight_hh_l" + layer].copy_(p["hidden" + layer + ".weight"]);
    theirs["bias_hh_l" + layer].zero_();
  }
  const Batch batch = test::token_batch(3, 6, 5);
  const auto hidden =
      std::get<0>(reference->forward(torch::embedding(p["embedding.weight"], batch["tokens"])));
  const auto expected = torch::linear(hidden, p["head.weight"], p["head.bias"]);
  CHECK(lstm.forward(batch)["logits"].allclose(expected, kTolerance, kTolerance));
}

TEST_CASE("a GRU learns, and equals torch's with the same weights") {
  test::check_model(use<Gru>({2, 8, 5}), test::token_batch(2, 4, 5), "targets", 2.0);
  constexpr double kTolerance = 1e-5;  // float32, sums in another order
  torch::manual_seed(3);
  Gru gru({2, 8, 5});
  const auto p = gru.module().named_parameters();
  torch::nn::GRU reference(torch::nn::GRUOptions(8, 8).num_layers(2).batch_first(true));
  const torch::NoGradGuard no_grad;
  auto theirs = reference->named_parameters();
  for (const std::string layer : {"0", "1"}) {
    theirs["weight_ih_l" + layer].copy_(p["input" + layer + ".weight"]);
    theirs["bias_ih_l" + layer].copy_(p["input" + layer + ".bias"]);
    theirs["weight_hh_l" + layer].copy_(p["hidden" + layer + ".weight"]);
    theirs["bias_hh_l" + layer].copy_(p["hidden" + layer + ".bias"]);
  }
  const Batch batch = test::token_batch(3, 6, 5);
  const auto hidden =
      std::get<0>(reference->forward(torch::embedding(p["embedding.weight"], batch["tokens"])));
  const auto expected = torch::linear(hidden, p["head.weight"], p["head.bias"]);
  CHECK(gru.forward(batch)["logits"].allclose(expected, kTolerance, kTolerance));
}

TEST_CASE("dropout works between layers in train mode only") {
  Lstm lstm({2, 16, 5, 0.5});
  test::check_dropout(lstm, test::token_batch(2, 4, 5));
}

TEST_CASE("options out of range and other shapes are refused") {
  CHECK_THROWS_AS(Lstm({0}), UsageError);
  CHECK_THROWS_AS(Lstm({1, 0}), UsageError);
  CHECK_THROWS_AS(Lstm({1, 8, 0}), UsageError);
  CHECK_THROWS_AS(Lstm({1, 8, 5, 1.0}), UsageError);
  Lstm lstm({1, 8, 5});
  CHECK_THROWS_AS(lstm.forward({{"tokens", torch::zeros({4}, torch::kLong)}}), ShapeError);
}

TEST_SUITE_END();
