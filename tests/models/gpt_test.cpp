#include "models/builtin/gpt.h"

#include <doctest/doctest.h>
#include <torch/nn/modules/activation.h>
#include <torch/optim/adamw.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "metrics/metric.h"
#include "models/losses/losses.h"
#include "models/model_checks.h"

using namespace rondo;

TEST_SUITE_BEGIN("models/gpt");

namespace {

constexpr int64_t kContext = 6;
constexpr int64_t kVocabulary = 7;

Gpt::Options small_gpt() {
  Gpt::Options options;
  options.layers = 2;
  options.heads = 2;
  options.width = 16;
  options.context = kContext;
  options.vocabulary = kVocabulary;
  return options;
}

}  // namespace

TEST_CASE("learns from tokens, tied or not") {
  Gpt::Options options = small_gpt();
  for (const bool tied : {false, true}) {
    CAPTURE(tied);
    options.tied = tied;
    test::check_model(
        use<Gpt>(options), test::token_batch(4, kContext, kVocabulary), "targets", 0.5);
  }
}

TEST_CASE("a token does not see what comes after it, and sees what came before") {
  torch::manual_seed(3);
  Gpt gpt(small_gpt());
  gpt.module().eval();
  const Batch batch = test::token_batch(1, kContext, kVocabulary);
  const auto logits = gpt.forward(batch)["logits"];
  for (int64_t changed = 0; changed < kContext; ++changed) {
    auto tokens = batch["tokens"].clone();
    tokens[0][changed] = (tokens[0][changed] + 1) % kVocabulary;
    const auto other = gpt.forward({{"tokens", tokens}})["logits"];
    for (int64_t t = 0; t < kContext; ++t) {
      CAPTURE(changed);
      CAPTURE(t);
      CHECK(other[0][t].equal(logits[0][t]) == (t < changed));
    }
  }
}

Gpt::Options llama() {
  Gpt::Options options = small_gpt();
  options.heads = 4;
  options.kv_heads = 2;
  options.positions = "rotary";
  options.norm = "rms";
  options.activation = "swiglu";
  options.bias = false;
  return options;
}

TEST_CASE("learns with every choice of its parts") {
  const auto learns = [](const Gpt::Options& options) {
    test::check_model(
        use<Gpt>(options), test::token_batch(4, kContext, kVocabulary), "targets", 0.5);
  };
  learns(llama());
  Gpt::Options options = small_gpt();
  options.kv_heads = 1;
  options.tied = true;
  learns(options);
  options = small_gpt();
  options.positions = "alibi";
  learns(options);
  options = small_gpt();
  options.norm = "rms";
  options.loss = use<FocalLoss>({1.0});
  learns(options);
}

TEST_CASE("with linear biases there is no table of positions, and no look ahead") {
  torch::manual_seed(3);
  Gpt::Options options = small_gpt();
  options.positions = "alibi";
  Gpt gpt(options);
  gpt.module().eval();
  CHECK_FALSE(gpt.module().named_parameters().contains("position_embedding.weight"));
  const Batch batch = test::token_batch(1, kContext, kVocabulary);
  const at::Tensor whole = gpt.forward(batch)["logits"];
  const at::Tensor half = gpt.forward({{"tokens", batch["tokens"].narrow(1, 0, 3)}})["logits"];
  CHECK(whole.narrow(1, 0, 3).allclose(half, 1e-4, 1e-5));
  // The order of what came before counts.
  const at::Tensor turned = gpt.forward({{"tokens", batch["tokens"].flip(1)}})["logits"];
  CHECK_FALSE(turned.allclose(whole, 1e-4, 1e-5));
}

TEST_CASE("the parameters of Llama's parts are as many as they should be") {
  Gpt gpt(llama());
  const auto p = gpt.module().named_parameters();
  // Four heads of queries, two of keys and two of values, 4 wide each.
  CHECK((p["block0.qkv.weight"].sizes() == at::IntArrayRef({32, 16})));
  CHECK((p["block0.expand.weight"].sizes() == at::IntArrayRef({2 * 43, 16})));  // 8/3 · 16 = 42.7
  CHECK(p.find("block0.norm1.bias") == nullptr);
  CHECK(p.find("block0.qkv.bias") == nullptr);
  CHECK(p.find("position_embedding.weight") == nullptr);
}

TEST_CASE("an RMS norm by hand: scaled alike, the tokens of the residual stream give the same") {
  Gpt::Options options = small_gpt();
  options.norm = "rms";
  options.layers = 1;
  Gpt gpt(options);
  const torch::NoGradGuard no_grad;
  auto p = gpt.module().named_parameters();
  p["block0.projection.weight"].zero_();
  p["block0.contract.weight"].zero_();
  const auto tokens = test::token_batch(1, kContext, kVocabulary)["tokens"];
  const auto x =
      torch::embedding(p["token_embedding.weight"], tokens) + p["position_embedding.weight"];
  const auto normed = x / (x.square().mean(-1, true) + 1e-5).sqrt();
  const auto expected = torch::linear(normed, p["head.weight"]);
  CHECK(gpt.forward({{"tokens", tokens}})["logits"].allclose(expected, 1e-5, 1e-5));
}

TEST_CASE("kept keys and values generate what whole windows give, and beyond the context too") {
  for (const Gpt::Options& options : {small_gpt(), llama()}) {
    torch::manual_seed(3);
    Gpt gpt(options);
    gpt.module().to(torch::kDouble);
    gpt.module().eval();
    for (const auto& parameter : gpt.module().parameters()) {
      parameter.detach().mul_(8);  // so that the likeliest token is clear
    }
    std::vector<int64_t> expected = {2, 3};
    for (int i = 0; i < 12; ++i) {
      const auto seen = std::min<size_t>(kContext, expected.size());
      const std::vector<int64_t> window(expected.end() - static_cast<std::ptrdiff_t>(seen),
                                        expected.end());
      const auto logits = gpt.forward({{"tokens", torch::tensor(window).unsqueeze(0)}})["logits"];
      expected.push_back(logits[0][-1].argmax().item<int64_t>());
    }
    KeyedRandom random(1);
    CHECK((gpt.generate({2, 3}, {12, 0.0}, random) == expected));
  }
}

TEST_CASE("of the largest logits alone a token is chosen") {
  Gpt gpt(small_gpt());
  KeyedRandom random(1);
  GenerateOptions options{40, 100.0};
  options.top_k = 1;
  const auto first = gpt.generate({0}, options, random);
  options.temperature = 0.0;
  CHECK((gpt.generate({0}, options, random) == first));
  options.top_k = -1;
  CHECK_THROWS_AS(gpt.generate({0}, options, random), UsageError);
}

TEST_CASE("one block equals torch's encoder layer with norm first") {
  constexpr double kTolerance = 1e-5;  // float32, sums in another order
  torch::manual_seed(3);
  Gpt::Options options = small_gpt();
  options.layers = 1;
  Gpt gpt(options);
  const auto p = gpt.module().named_parameters();
  const auto x = torch::randn({1, kContext, 16});
  torch::nn::MultiheadAttention attention(torch::nn::MultiheadAttentionOptions(16, 2));
  const torch::NoGradGuard no_grad;
  attention->in_proj_weight.copy_(p["block0.qkv.weight"]);
  attention->in_proj_bias.copy_(p["block0.qkv.bias"]);
  attention->out_proj->weight.copy_(p["block0.projection.weight"]);
  attention->out_proj->bias.copy_(p["block0.projection.bias"]);
  const auto mask = torch::full({kContext, kContext}, -INFINITY).triu(1);
  const auto tokens = test::token_batch(1, kContext, kVocabulary)["tokens"];
  auto h = torch::embedding(p["token_embedding.weight"], tokens) + p["position_embedding.weight"];
  const auto norm = [&](const at::Tensor& in, const std::string& name) {
    return torch::layer_norm(in, {16}, p[name + ".weight"], p[name + ".bias"]);
  };
  const auto n = norm(h, "block0.norm1").transpose(0, 1);
  h = h + std::get<0>(attention->forward(n, n, n, {}, true, mask)).transpose(0, 1);
  const auto inner = torch::gelu(
      torch::linear(norm(h, "block0.norm2"), p["block0.expand.weight"], p["block0.expand.bias"]));
  h = h + torch::linear(inner, p["block0.contract.weight"], p["block0.contract.bias"]);
  const auto expected = torch::linear(norm(h, "final_norm"), p["head.weight"]);
  const auto logits = gpt.forward({{"tokens", tokens}})["logits"];
  CHECK(logits.allclose(expected, kTolerance, kTolerance));
}

TEST_CASE("a tied head is one parameter with the embedding") {
  Gpt::Options options = small_gpt();
  Gpt untied(options);
  options.tied = true;
  Gpt tied(options);
  CHECK(tied.module().parameters().size() + 1 == untied.module().parameters().size());
  CHECK(tied.module().named_parameters().find("head.weight") == nullptr);
  CHECK(tied.module().named_buffers().is_empty());  // the causal mask is in no checkpoint
  tied.module().to(torch::kDouble);
  const Batch batch = test::token_batch(2, kContext, kVocabulary);
  auto weight = tied.module().named_parameters()["token_embedding.weight"];
  tied.forward(batch)["loss"].backward();
  // The head reaches rows whose token the batch need not have.
  CHECK((weight.grad().abs().sum(1) > 0).all().item<bool>());
  const torch::NoGradGuard no_grad;
  weight.zero_();
  CHECK(tied.forward(batch)["logits"].equal(
      torch::zeros({2, kContext, kVocabulary}, torch::kDouble)));
}

TEST_CASE("begins as GPT-2 does, near the uniform guess") {
  torch::manual_seed(3);
  Gpt gpt({});
  const auto p = gpt.module().named_parameters();
  // Standard errors of these deviations are below 1 % of them.
  CHECK(p["block0.qkv.weight"].std().item<double>() == doctest::Approx(0.02).epsilon(0.05));
  CHECK(p["block0.contract.weight"].std().item<double>() ==
        doctest::Approx(0.02 / std::sqrt(8.0)).epsilon(0.05));
  CHECK(p["block3.qkv.bias"].equal(torch::zeros({3 * 128})));
  CHECK(p["final_norm.weight"].equal(torch::ones({128})));
  const double loss = gpt.forward(test::token_batch(4, 64, 65))["loss"].item<double>();
  CHECK(loss == doctest::Approx(std::log(65.0)).epsilon(0.05));
}

TEST_CASE("dropout works in train mode only") {
  Gpt::Options options = small_gpt();
  options.dropout = 0.5;
  Gpt gpt(options);
  test::check_dropout(gpt, test::token_batch(2, kContext, kVocabulary));
}

TEST_CASE("generates what it learned, and is left in the mode it was in") {
  torch::manual_seed(3);
  Gpt gpt(small_gpt());
  auto cycle = torch::arange(kContext + 1).remainder(3).unsqueeze(0);
  const Batch batch = {{"tokens", cycle.narrow(1, 0, kContext)},
                       {"targets", cycle.narrow(1, 1, kContext)}};
  torch::optim::AdamW optimizer(gpt.module().parameters(), 1e-2);
  for (int i = 0; i < 60; ++i) {
    optimizer.zero_grad();
    gpt.forward(batch)["loss"].backward();
    optimizer.step();
  }
  KeyedRandom random(1);
  const auto greedy = gpt.generate({0, 1}, {3, 0.0}, random);
  CHECK((greedy == std::vector<int64_t>{0, 1, 2, 0, 1}));
  CHECK(gpt.module().is_training());
  gpt.module().eval();
  gpt.generate({0}, {1, 0.0}, random);
  CHECK(!gpt.module().is_training());
}

TEST_CASE("generates beyond the context, the same from the same key, within the vocabulary") {
  Gpt gpt(small_gpt());
  KeyedRandom a(1);
  KeyedRandom b(1);
  const auto first = gpt.generate({2, 3}, {30, 1.0}, a);
  CHECK(first.size() == 32);
  CHECK((first == gpt.generate({2, 3}, {30, 1.0}, b)));
  CHECK((first != gpt.generate({2, 3}, {30, 1.0}, b)));
  for (const int64_t token : first) {
    CHECK(token >= 0);
    CHECK(token < kVocabulary);
  }
  CHECK_THROWS_AS(gpt.generate({}, {}, a), UsageError);
  CHECK_THROWS_AS(gpt.generate({kVocabulary}, {}, a), UsageError);
  CHECK_THROWS_AS(gpt.generate({1}, {-1}, a), UsageError);
  CHECK_THROWS_AS(gpt.generate({1}, {1, -1.0}, a), UsageError);
}

TEST_CASE("only tokens below a bound are chosen where there is one") {
  Gpt gpt(small_gpt());
  CHECK(gpt.vocabulary() == kVocabulary);
  KeyedRandom random(1);
  for (const double temperature : {0.0, 100.0}) {  // the hotter, the more even
    for (const int64_t token : gpt.generate({0}, {60, temperature, 2}, random)) {
      CHECK(token < 2);
    }
  }
  CHECK_THROWS_AS(gpt.generate({0}, {1, 1.0, 0}, random), UsageError);
  CHECK_THROWS_AS(gpt.generate({0}, {1, 1.0, kVocabulary + 1}, random), UsageError);
}

TEST_CASE("shorter sequences are welcome, longer ones refused") {
  Gpt gpt(small_gpt());
  CHECK((gpt.forward(test::token_batch(2, 3, kVocabulary))["logits"].sizes() ==
         at::IntArrayRef({2, 3, kVocabulary})));
  CHECK_THROWS_AS(gpt.forward(test::token_batch(2, kContext + 1, kVocabulary)), ShapeError);
  const auto metrics = gpt.metrics();
  REQUIRE(metrics.size() == 1);
  CHECK(metrics[0].make()->name() == "perplexity");
}

TEST_CASE("options out of range are refused") {
  const auto refuses = [](auto change) {
    Gpt::Options options = small_gpt();
    change(options);
    CHECK_THROWS_AS(Gpt{options}, UsageError);
  };
  refuses([](auto& o) { o.layers = 0; });
  refuses([](auto& o) { o.heads = 0; });
  refuses([](auto& o) { o.heads = 3; });
  refuses([](auto& o) { o.width = 0; });
  refuses([](auto& o) { o.context = 0; });
  refuses([](auto& o) { o.vocabulary = 0; });
  refuses([](auto& o) { o.dropout = -0.1; });
  refuses([](auto& o) { o.kv_heads = 3; });
  refuses([](auto& o) { o.hidden = -1; });
  refuses([](auto& o) { o.positions = "none"; });
  refuses([](auto& o) { o.norm = "batch"; });
  refuses([](auto& o) { o.activation = "relu"; });
  refuses([](auto& o) { o.positions = "rotary", o.heads = 16; });
  refuses([](auto& o) { o.rotary_base = 1; });
}

TEST_SUITE_END();
