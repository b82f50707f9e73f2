#include "metrics/accuracy.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <doctest/doctest.h>

#include <cmath>

#include "core/error.h"

using namespace rondo;

TEST_SUITE_BEGIN("metrics/accuracy");

TEST_CASE("equals the direct count over uneven batches") {
  torch::manual_seed(1);
  Accuracy accuracy({});
  CHECK(accuracy.name() == "accuracy");
  CHECK(std::isnan(accuracy.compute()));
  const auto before = accuracy.state();
  int64_t correct = 0;
  int64_t total = 0;
  for (const int64_t size : {5, 1, 8}) {
    const auto logits = torch::randn({size, 3});
    const auto label = torch::randint(3, {size}, torch::kLong);
    for (int64_t i = 0; i < size; ++i) {
      correct += logits[i].argmax().item<int64_t>() == label[i].item<int64_t>() ? 1 : 0;
    }
    total += size;
    accuracy.update({{"logits", logits}}, {{"label", label}});
  }
  CHECK(accuracy.compute() == static_cast<double>(correct) / static_cast<double>(total));
  CHECK(accuracy.state()[0].second.is_same(before[0].second));
  accuracy.reset();
  CHECK(std::isnan(accuracy.compute()));
}

TEST_CASE("every token of a sequence counts") {
  Accuracy accuracy({"scores", "targets"});
  const auto targets = torch::arange(6).reshape({2, 3});
  auto scores = torch::one_hot(targets, 6).to(torch::kFloat);
  scores[0][0] = torch::one_hot(torch::tensor(5), 6).to(torch::kFloat);
  accuracy.update({{"scores", scores}}, {{"targets", targets}});
  CHECK(accuracy.compute() == 5.0 / 6.0);
}

TEST_CASE("labels that a loss ignores count neither as right nor as wrong") {
  for (const auto dtype : {torch::kLong, torch::kInt, torch::kShort, torch::kChar}) {
    Accuracy accuracy({});
    const auto logits = torch::one_hot(torch::tensor({0, 1, 2, 0}), 3).to(torch::kFloat);
    accuracy.update({{"logits", logits}}, {{"label", torch::tensor({0, -100, 1, -100}, dtype)}});
    CHECK(accuracy.compute() == 0.5);
    accuracy.update({{"logits", logits}}, {{"label", torch::full({4}, -100, dtype)}});
    CHECK(accuracy.compute() == 0.5);
  }
  Accuracy::Options options;
  options.ignore_index = 0;
  Accuracy without_zero(options);
  const auto logits = torch::one_hot(torch::tensor({0, 1, 2}), 3).to(torch::kFloat);
  without_zero.update({{"logits", logits}}, {{"label", torch::tensor({0, 1, 1}, torch::kByte)}});
  CHECK(without_zero.compute() == 0.5);
}

TEST_CASE("a label of eight bits that is 156 is not the ignored -100") {
  Accuracy accuracy({});
  const auto label = torch::full({2}, 156, torch::kByte);
  accuracy.update({{"logits", torch::zeros({2, 200})}}, {{"label", label}});
  CHECK(accuracy.compute() == 0.0);
}

TEST_CASE("logits that do not fit the labels are refused") {
  Accuracy accuracy({});
  CHECK_THROWS_AS(accuracy.update({{"logits", torch::zeros({2, 3})}},
                                  {{"label", torch::zeros({3}, torch::kLong)}}),
                  ShapeError);
}

TEST_CASE("a label among the largest top_k logits counts as right") {
  Accuracy::Options options;
  options.top_k = 2;
  Accuracy accuracy(options);
  CHECK(accuracy.name() == "top_2_accuracy");
  const auto logits = torch::tensor({{3.0, 2.0, 1.0}, {3.0, 2.0, 1.0}, {3.0, 2.0, 1.0}});
  accuracy.update({{"logits", logits}}, {{"label", torch::tensor({0, 1, 2})}});
  CHECK(accuracy.compute() == 2.0 / 3.0);
  options.top_k = 4;
  Accuracy too_many(options);
  CHECK_THROWS_AS(too_many.update({{"logits", logits}}, {{"label", torch::tensor({0, 1, 2})}}),
                  ShapeError);
}

TEST_SUITE_END();
