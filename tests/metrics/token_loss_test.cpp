#include "metrics/token_loss.h"

#include <torch/nn/functional/loss.h>
#include <torch/types.h>

#include <doctest/doctest.h>

#include <cmath>

#include "core/error.h"

using namespace rondo;

TEST_SUITE_BEGIN("metrics/token_loss");

TEST_CASE("is the exponential of the mean loss of a token over uneven batches") {
  Perplexity perplexity({});
  CHECK(perplexity.name() == "perplexity");
  CHECK(std::isnan(perplexity.compute()));
  perplexity.update({{"loss", torch::full({}, 1.0)}}, {{"targets", torch::zeros({2, 3})}});
  perplexity.update({{"loss", torch::full({}, 3.0)}}, {{"targets", torch::zeros({1, 2})}});
  CHECK(perplexity.compute() == doctest::Approx(std::exp((6.0 * 1.0 + 2.0 * 3.0) / 8.0)));
  perplexity.reset();
  CHECK(std::isnan(perplexity.compute()));
}

TEST_CASE("a uniform guess among n tokens has perplexity n") {
  constexpr double kTolerance = 1e-5;  // float32 rounding of the loss
  Perplexity perplexity({});
  const auto targets = torch::randint(7, {4, 5}, torch::kLong);
  const auto loss = torch::nn::functional::cross_entropy(torch::zeros({20, 7}), targets.flatten());
  perplexity.update({{"loss", loss}}, {{"targets", targets}});
  CHECK(perplexity.compute() == doctest::Approx(7.0).epsilon(kTolerance));
}

TEST_CASE("targets that the loss ignores have no weight, and a batch of them alone adds nothing") {
  Perplexity perplexity({});
  const auto targets = torch::tensor({{1, -100, -100}, {2, 3, -100}});
  perplexity.update({{"loss", torch::full({}, 1.0)}}, {{"targets", targets}});
  perplexity.update({{"loss", torch::full({}, 5.0)}}, {{"targets", torch::tensor({{4}})}});
  perplexity.update({{"loss", torch::full({}, NAN)}}, {{"targets", torch::full({1, 3}, -100)}});
  CHECK(perplexity.compute() == doctest::Approx(std::exp((3.0 * 1.0 + 5.0) / 4.0)));
}

TEST_CASE("a loss with dimensions is refused") {
  Perplexity perplexity({});
  CHECK_THROWS_AS(
      perplexity.update({{"loss", torch::zeros({2})}}, {{"targets", torch::zeros({2, 3})}}),
      ShapeError);
}

TEST_CASE("bits of a byte follow from nats of a token and the length of tokens") {
  BitsPerByte::Options options;
  options.bytes_per_token = 4.0;
  BitsPerByte bits(options);
  bits.update({{"loss", torch::full({}, 8 * std::log(2.0))}}, {{"targets", torch::zeros({2, 3})}});
  CHECK(bits.compute() == doctest::Approx(2.0));
  CHECK(bits.name() == "bits_per_byte");
}

TEST_SUITE_END();
