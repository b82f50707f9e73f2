#include "metrics/ranking.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "core/error.h"

using namespace rondo;

TEST_SUITE_BEGIN("metrics/ranking");

namespace {

/// The share of pairs of one of class 1 and one of class 0 in which it has the larger score; half
/// of those with equal scores.
double share_of_ranked_pairs(const at::Tensor& scores, const at::Tensor& label) {
  double ranked = 0.0;
  double pairs = 0.0;
  for (int64_t i = 0; i < label.numel(); ++i) {
    for (int64_t j = 0; j < label.numel(); ++j) {
      if (label[i].item<int64_t>() == 1 && label[j].item<int64_t>() == 0) {
        const double difference = (scores[i] - scores[j]).item<double>();
        ranked += difference > 0 ? 1.0 : difference == 0 ? 0.5 : 0.0;
        pairs += 1.0;
      }
    }
  }
  return ranked / pairs;
}

template <class T>
double value_of(const at::Tensor& logits, const at::Tensor& label, typename T::Options options) {
  T metric(options);
  CHECK(std::isnan(metric.compute()));
  const int64_t half = label.size(0) / 3;
  metric.update({{"logits", logits.slice(0, 0, half)}}, {{"label", label.slice(0, 0, half)}});
  metric.update({{"logits", logits.slice(0, half)}}, {{"label", label.slice(0, half)}});
  return metric.compute();
}

}  // namespace

TEST_CASE("auroc is the share of pairs that are ranked right") {
  torch::manual_seed(3);
  const auto label = torch::randint(2, {60}, torch::kLong);
  const auto logit = torch::randn({60}) + label;
  Auroc::Options options;
  options.bins = 1'000'000;  // no two scores share one
  CHECK(value_of<Auroc>(logit, label, options) ==
        doctest::Approx(share_of_ranked_pairs(logit, label)));
  // scores of one bin are a tie
  options.bins = 10;
  const auto binned = logit.to(torch::kDouble).sigmoid().mul(10).floor();
  CHECK(value_of<Auroc>(logit, label, options) ==
        doctest::Approx(share_of_ranked_pairs(binned, label)));
}

TEST_CASE("average precision is that of scikit-learn's example") {
  const auto label = torch::tensor({0, 0, 1, 1});
  const auto logit = torch::tensor({0.1, 0.4, 0.35, 0.8}).logit();
  CHECK(value_of<AveragePrecision>(logit, label, {}) == doctest::Approx(0.8333333333));
  CHECK(value_of<Auroc>(logit, label, {}) == doctest::Approx(0.75));
}

TEST_CASE("more classes: each against all others, without those that do not occur") {
  torch::manual_seed(4);
  const auto label = torch::randint(3, {45}, torch::kLong);
  const auto logits = torch::randn({45, 4});
  Auroc::Options options;
  options.classes = 4;
  options.bins = 1'000'000;
  const auto probabilities = logits.to(torch::kDouble).softmax(1);
  double mean = 0.0;
  for (int64_t c = 0; c < 3; ++c) {
    mean += share_of_ranked_pairs(probabilities.select(1, c), label.eq(c).to(torch::kLong)) / 3;
  }
  CHECK(value_of<Auroc>(logits, label, options) == doctest::Approx(mean));
}

TEST_CASE("ignored labels have no rank") {
  const auto label = torch::tensor({0, 0, -100, 1, -100, 1});
  const auto logit = torch::tensor({-1.0, 0.5, 9.0, 0.2, -9.0, 2.0});
  CHECK(value_of<Auroc>(logit, label, {}) == doctest::Approx(0.75));
}

TEST_CASE("the curves of two classes go from no guess to all of them") {
  using Rows = std::vector<std::vector<std::string>>;
  const at::Tensor logit = torch::tensor({3.0, 2.0, 1.0, 0.0, -1.0});
  const at::Tensor label = torch::tensor({1, 0, 1, 0, 0});
  Auroc auroc({});
  AveragePrecision precision({});
  for (Metric* metric : std::vector<Metric*>{&auroc, &precision}) {
    CHECK(metric->media().empty());
    metric->update({{"logits", logit}}, {{"label", label}});
    REQUIRE(metric->media().size() == 1);
    CHECK(metric->media()[0].name == "curve");
  }
  const auto roc = std::get<TextTable>(auroc.media()[0].value);
  CHECK(roc.columns == std::vector<std::string>{"false_positive_rate", "true_positive_rate"});
  CHECK(roc.rows == Rows{{"0", "0"},
                         {"0", "0.5"},
                         {"0.33333", "0.5"},
                         {"0.33333", "1"},
                         {"0.66667", "1"},
                         {"1", "1"}});
  const auto pr = std::get<TextTable>(precision.media()[0].value);
  CHECK(pr.columns == std::vector<std::string>{"recall", "precision"});
  CHECK(pr.rows ==
        Rows{{"0.5", "1"}, {"0.5", "0.5"}, {"1", "0.66667"}, {"1", "0.5"}, {"1", "0.4"}});
}

TEST_CASE("each of several classes has a curve, of a hundred points at most") {
  torch::manual_seed(4);
  Auroc::Options options;
  options.classes = 3;
  Auroc auroc(options);
  const auto label = torch::randint(2, {2000}, torch::kLong);  // class 2 does not occur
  auroc.update({{"logits", torch::randn({2000, 3})}}, {{"label", label}});
  const std::vector<Media> curves = auroc.media();
  REQUIRE(curves.size() == 2);
  CHECK(curves[1].name == "curve/1");
  const auto table = std::get<TextTable>(curves[1].value);
  CHECK(table.rows.size() == 100);
  CHECK(table.rows.front() == std::vector<std::string>{"0", "0"});
  CHECK(table.rows.back() == std::vector<std::string>{"1", "1"});
}

TEST_SUITE_END();
