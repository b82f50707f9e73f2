#include "metrics/class_scores.h"

#include <torch/types.h>

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>

#include "core/error.h"

using namespace rondo;

TEST_SUITE_BEGIN("metrics/class_scores");

namespace {

// Labels 0 0 0 1 1 2, guesses 0 0 1 1 2 2: counted by hand.
const std::vector<int64_t> kLabels = {0, 0, 0, 1, 1, 2};
const std::vector<int64_t> kGuesses = {0, 0, 1, 1, 2, 2};

at::Tensor logits_for(const std::vector<int64_t>& guesses, int64_t classes) {
  return torch::one_hot(torch::tensor(guesses), classes).to(torch::kFloat);
}

/// In two batches of different size.
void add(Metric& metric, const std::vector<int64_t>& guesses, const std::vector<int64_t>& labels) {
  const at::Tensor logits = logits_for(guesses, 3);
  const at::Tensor label = torch::tensor(labels);
  metric.update({{"logits", logits.slice(0, 0, 4)}}, {{"label", label.slice(0, 0, 4)}});
  metric.update({{"logits", logits.slice(0, 4)}}, {{"label", label.slice(0, 4)}});
}

template <class T>
double score(const std::string& average) {
  typename T::Options options;
  options.classes = 3;
  options.average = average;
  T metric(options);
  CHECK(std::isnan(metric.compute()));
  add(metric, kGuesses, kLabels);
  return metric.compute();
}

std::map<std::string, double> by_key(const std::vector<Metric::Value>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("scores are those counted by hand, whatever the batches") {
  // class:      0    1    2
  // precision   1   1/2  1/2
  // recall     2/3  1/2   1
  // f1         4/5  1/2  2/3
  // iou        2/3  1/3  1/2
  CHECK(score<Precision>("macro") == doctest::Approx((1 + 0.5 + 0.5) / 3));
  CHECK(score<Precision>("weighted") == doctest::Approx((3 * 1 + 2 * 0.5 + 1 * 0.5) / 6));
  CHECK(score<Recall>("macro") == doctest::Approx((2.0 / 3 + 0.5 + 1) / 3));
  CHECK(score<F1>("macro") == doctest::Approx((0.8 + 0.5 + 2.0 / 3) / 3));
  CHECK(score<IoU>("macro") == doctest::Approx((2.0 / 3 + 1.0 / 3 + 0.5) / 3));
  for (const double micro :
       {score<Precision>("micro"), score<Recall>("micro"), score<F1>("micro")}) {
    CHECK(micro == doctest::Approx(4.0 / 6));
  }
}

TEST_CASE("each class is logged by itself where it is asked for, with the mean") {
  Recall::Options options;
  options.classes = 3;
  options.average = "none";
  Recall recall(options);
  add(recall, kGuesses, kLabels);
  const auto values = by_key(recall.values());
  REQUIRE(values.size() == 4);
  CHECK(values.at("0") == doctest::Approx(2.0 / 3));
  CHECK(values.at("1") == doctest::Approx(0.5));
  CHECK(values.at("2") == doctest::Approx(1.0));
  CHECK(values.at("") == doctest::Approx(recall.compute()));
}

TEST_CASE("a class that neither occurs nor is guessed has no share in the mean") {
  F1::Options options;
  options.classes = 3;
  F1 f1(options);
  add(f1, {0, 0, 1, 1, 1, 1}, {0, 0, 1, 1, 1, 0});
  CHECK(f1.compute() == doctest::Approx((2 * 2.0 / (2 * 2 + 1) + 2 * 3.0 / (2 * 3 + 1)) / 2));
}

TEST_CASE("the binary average is that of class 1, from one logit a label or from two") {
  F1::Options options;
  options.average = "binary";
  const at::Tensor label = torch::tensor({1, 1, 0, 0, 1});
  const at::Tensor logit = torch::tensor({2.0, -1.0, 0.5, -3.0, 0.1});
  F1 one(options);
  one.update({{"logits", logit}}, {{"label", label}});
  F1 column(options);
  column.update({{"logits", logit.unsqueeze(1)}}, {{"label", label.to(torch::kFloat)}});
  F1 two(options);
  two.update({{"logits", torch::stack({torch::zeros({5}), logit}, 1)}}, {{"label", label}});
  for (const F1* f1 : {&one, &column, &two}) {
    CHECK(f1->compute() == doctest::Approx(2 * 2.0 / (2 * 2 + 1 + 1)));
  }
}

TEST_CASE("the matrix has a row a label and a column a guess, without ignored labels") {
  ConfusionMatrix::Options options;
  options.classes = 3;
  ConfusionMatrix confusion(options);
  add(confusion, kGuesses, {0, 0, -100, 1, 1, 2});
  const auto values = by_key(confusion.values());
  REQUIRE(values.size() == 9);
  CHECK(values.at("0/0") == 2);
  CHECK(values.at("0/1") == 0);
  CHECK(values.at("1/1") == 1);
  CHECK(values.at("1/2") == 1);
  CHECK(values.at("2/2") == 1);
  CHECK(confusion.compute() == doctest::Approx(4.0 / 5));
  confusion.reset();
  CHECK(std::isnan(confusion.compute()));
}

TEST_CASE("logits of other classes, too few labels and unknown averages are refused") {
  Recall recall({});
  CHECK_THROWS_WITH_AS(recall.update({{"logits", torch::zeros({4, 3})}},
                                     {{"label", torch::zeros({4}, torch::kLong)}}),
                       doctest::Contains("set its classes"),
                       ShapeError);
  CHECK_THROWS_AS(recall.update({{"logits", torch::zeros({4, 2})}},
                                {{"label", torch::zeros({3}, torch::kLong)}}),
                  ShapeError);
  Recall::Options options;
  options.average = "mean";
  CHECK_THROWS_AS(Recall{options}, UsageError);
  options.average = "binary";
  options.classes = 3;
  CHECK_THROWS_AS(Recall{options}, UsageError);
}

TEST_SUITE_END();
