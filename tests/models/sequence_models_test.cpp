#include <doctest/doctest.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "metrics/metric.h"
#include "models/builtin/autoencoder.h"
#include "models/builtin/forecaster.h"
#include "models/losses/losses.h"
#include "models/model_checks.h"

// The models of time series, and those that learn a sample itself.

using namespace rondo;

TEST_SUITE_BEGIN("models/sequence_models");

namespace {

Forecaster::Options small(const char* body) {
  Forecaster::Options options;
  options.body = body;
  options.layers = 2;
  options.width = 8;
  return options;
}

}  // namespace

TEST_CASE("each body learns what follows a window, of one number and of several") {
  for (const char* body : {"tcn", "lstm", "gru"}) {
    CAPTURE(std::string(body));
    torch::manual_seed(2);
    const Batch one = {{"series", torch::randn({4, 9})}, {"target", torch::randn({4, 1})}};
    test::check_model(use<Forecaster>(small(body)), one, "target", 0.2);
    Forecaster::Options options = small(body);
    options.features = 3;
    options.targets = 2;
    options.horizon = 4;
    const Batch several = {{"series", torch::randn({4, 9, 3})},
                           {"target", torch::randn({4, 4, 2})}};
    test::check_model(use<Forecaster>(options), several, "target", 0.3);
    options.loss = use<QuantileLoss>();
    Forecaster quantiles(options);
    CHECK(quantiles.forward(several)["prediction"].sizes() == at::IntArrayRef({4, 4, 2, 3}));
    CHECK(quantiles.metrics().empty());
    CHECK_THROWS_AS(quantiles.forward(one), ShapeError);
  }
}

TEST_CASE("a TCN sees as far back as it says, and no further") {
  Forecaster::Options options = small("tcn");
  options.layers = 3;
  constexpr int64_t kReach = 1 + 2 * (3 - 1) * 7;  // 29 steps
  torch::manual_seed(2);
  Forecaster model(options);
  model.module().to(torch::kDouble);
  model.module().eval();
  const auto series = torch::randn({1, kReach + 3}, torch::kDouble);
  const auto prediction = [&](int64_t changed) {
    auto x = series.clone();
    x[0][changed] += 5.0;
    return model.forward({{"series", x}})["prediction"];
  };
  const auto as_it_is = model.forward({{"series", series}})["prediction"];
  CHECK(prediction(2).equal(as_it_is));
  CHECK(!prediction(series.size(1) - 1).equal(as_it_is));
  auto gradient = series.clone().requires_grad_();
  model.forward({{"series", gradient}})["prediction"].sum().backward();
  CHECK(gradient.grad().slice(1, 0, 3).abs().sum().item<double>() == 0.0);
}

TEST_CASE("an autoencoder makes its sample again") {
  Autoencoder::Options options;
  options.sizes = {12, 8, 3};
  torch::manual_seed(2);
  Autoencoder model(options);
  const Batch batch = {{"image", torch::rand({5, 3, 4})}};
  const Outputs outputs = model.forward(batch);
  CHECK(outputs["reconstruction"].sizes() == at::IntArrayRef({5, 3, 4}));
  CHECK(outputs["latent"].sizes() == at::IntArrayRef({5, 3}));
  CHECK(outputs["loss"].allclose(at::mse_loss(outputs["reconstruction"], batch["image"])));
  CHECK(model.decode(outputs["latent"]).allclose(outputs["reconstruction"].flatten(1)));
  options.loss = use<BinaryCrossEntropyLoss>();
  Autoencoder shares(options);
  const auto made = shares.forward(batch)["reconstruction"];
  CHECK(made.gt(0).logical_and(made.lt(1)).all().item<bool>());
  options.loss = use<CrossEntropyLoss>();
  CHECK_THROWS_AS(Autoencoder{options}, UsageError);
}

TEST_CASE("a VAE's divergence by hand, random in training and repeatable in an evaluation") {
  Vae::Options options;
  options.sizes = {6, 5, 2};
  options.beta = 0.5;
  torch::manual_seed(2);
  Vae model(options);
  const Batch batch = {{"image", torch::rand({4, 6})}};
  CHECK(!model.forward(batch)["latent"].equal(model.forward(batch)["latent"]));
  model.module().eval();
  const Outputs outputs = model.forward(batch);
  CHECK(outputs["latent"].equal(model.forward(batch)["latent"]));
  const double expected =
      6 * at::mse_loss(outputs["reconstruction"], batch["image"]).item<double>();
  CHECK(outputs["reconstruction_loss"].item<double>() == doctest::Approx(expected));
  CHECK(outputs["loss"].item<double>() ==
        doctest::Approx(expected + 0.5 * outputs["divergence"].item<double>()));
  // Where the encoder says mean 0.3 and variance e for each of two numbers:
  // 0.5 · 2 · (0.09 + e - 1 - 1).
  {
    const torch::NoGradGuard no_grad;
    auto p = model.module().named_parameters();
    p["coder.encoder.layer1.weight"].zero_();
    p["coder.encoder.layer1.bias"].copy_(torch::tensor({0.3, 0.3, 1.0, 1.0}));
  }
  CHECK(model.forward(batch)["divergence"].item<double>() ==
        doctest::Approx(0.09 + 2.718281828 - 2).epsilon(1e-5));
  REQUIRE(model.metrics().size() == 2);
  CHECK(model.metrics()[1].make()->name() == "divergence");
  CHECK(model.decode(torch::zeros({7, 2})).sizes() == at::IntArrayRef({7, 6}));
}

TEST_CASE("options of these models out of range are refused") {
  const auto refuses = [](auto change) {
    Forecaster::Options options;
    change(options);
    CHECK_THROWS_AS(Forecaster{options}, UsageError);
  };
  refuses([](auto& o) { o.body = "cnn"; });
  refuses([](auto& o) { o.kernel = 1; });
  refuses([](auto& o) { o.layers = 33; });
  refuses([](auto& o) { o.horizon = 0; });
  refuses([](auto& o) { o.loss = use<CrossEntropyLoss>(); });
  Autoencoder::Options plain;
  plain.sizes = {3};
  CHECK_THROWS_AS(Autoencoder{plain}, UsageError);
  Vae::Options vae;
  vae.beta = -1;
  CHECK_THROWS_AS(Vae{vae}, UsageError);
}

TEST_SUITE_END();
