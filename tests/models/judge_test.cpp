#include "models/blocks/judge.h"

#include <torch/nn/functional/loss.h>
#include <torch/types.h>

#include <doctest/doctest.h>

#include <cmath>
#include <exception>
#include <string>

#include "core/error.h"
#include "models/losses/class_losses.h"

using namespace rondo;

TEST_SUITE_BEGIN("models/judge");

TEST_CASE("every token of a sequence is one row") {
  const auto logits = torch::randn({2, 3, 5});
  const auto label = torch::randint(5, {2, 3}, torch::kLong);
  const auto expected =
      torch::nn::functional::cross_entropy(logits.reshape({6, 5}), label.reshape({6}));
  const rondo::detail::Judge judge({}, "targets");
  const Outputs outputs = judge(logits, {{"targets", label}});
  CHECK(judge(logits, {{"tokens", label}}).find("loss") == nullptr);
  CHECK(outputs["loss"].equal(expected));
  CHECK(outputs["logits"].is_same(logits));
}

TEST_CASE("integers of any width are numbers of classes, and those of 64 bits are not copied") {
  const auto logits = torch::randn({4, 3});
  const auto label = torch::tensor({2, 0, 1, 2});
  const auto expected = torch::nn::functional::cross_entropy(logits, label);
  for (const auto dtype : {torch::kLong, torch::kInt, torch::kShort, torch::kChar, torch::kByte}) {
    CHECK(CrossEntropyLoss().mean(logits, label.to(dtype)).equal(expected));
  }
  const auto two = torch::tensor({1, 0, 1, 1});
  CHECK(CrossEntropyLoss()
            .mean(logits, two.to(torch::kBool))
            .equal(torch::nn::functional::cross_entropy(logits, two)));
}

TEST_CASE("labels that are no integers, too few, or out of range are errors that name them") {
  const auto logits = torch::zeros({4, 3});
  const auto error_with = [&](const at::Tensor& label) {
    try {
      CrossEntropyLoss().mean(logits, label, "kind");
    } catch (...) {
      return describe(std::current_exception());
    }
    return std::string("nothing was thrown");
  };
  const auto has = [](const std::string& text, const char* fact) {
    return text.find(fact) != std::string::npos;
  };
  for (const char* fact : {"\"kind\"", "Float[4]"}) {
    CHECK(has(error_with(torch::zeros({4})), fact));
  }
  for (const char* fact : {"\"kind\"", "[4, 3]", "[5]"}) {
    CHECK(has(error_with(torch::zeros({5}, torch::kLong)), fact));
  }
  for (const char* fact : {"\"kind\"", "[0, 3)", "Target 7"}) {
    CHECK(has(error_with(torch::tensor({0, 1, 7, 2})), fact));
  }
  CHECK_THROWS_AS(CrossEntropyLoss().mean(logits, torch::zeros({4}), "kind"), ShapeError);
}

TEST_CASE("metrics that are told what the loss ignores do not count it either") {
  CrossEntropyLoss::Options options;
  options.ignore_index = 1;
  const rondo::detail::Judge judge(use<CrossEntropyLoss>(options), "label");
  const at::Tensor label = torch::tensor({0, 1, 2, 1}, torch::kLong);
  const at::Tensor logits = torch::one_hot(torch::tensor({0, 0, 2, 0}), 3).to(torch::kFloat);
  const auto metric = judge.metrics().at(0).make();
  metric->ignore(*judge.loss().ignore_index());
  metric->update({{"logits", logits}}, {{"label", label}});
  CHECK(metric->compute() == 1.0);
  const auto perplexity = judge.token_metrics().at(0).make();
  perplexity->ignore(*judge.loss().ignore_index());
  perplexity->update(judge(logits, {{"label", label}}), {{"label", label}});
  CHECK(perplexity->compute() == doctest::Approx(1.0 + 2.0 * std::exp(-1.0)));
}

TEST_SUITE_END();
