#include "metrics/class_scores.h"

#include <ATen/ops/argmax.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "core/ignored_label.h"
#include "core/require.h"
#include "metrics/internal/class_rows.h"
#include "metrics/register.h"

namespace rondo {

namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

at::Tensor guess_of(const at::Tensor& rows) {
  return rows.size(1) == 1 ? rows.flatten().gt(0).to(at::kLong) : rows.argmax(1);
}

template <class T>
KeyTable<typename T::Options>& add_counts(Registry<Metric>& registry,
                                          const char* name,
                                          const char* doc) {
  using Options = typename T::Options;
  return registry.add<T>(name, doc)
      .key("logits",
           detail::key_in<Options>(&Options::logits),
           "an output: [..., classes], or one logit a label")
      .key("target", detail::key_in<Options>(&Options::label), "name in the batch: integers [...]")
      .key("classes", detail::key_in<Options>(&Options::classes), at_least(2), "number of classes")
      .key("ignore_index",
           detail::key_in<Options>(&Options::ignore_index),
           "a label that does not count; absent: the one that the model's loss leaves out");
}

template <class T>
void add_score(Registry<Metric>& registry, const char* name, const char* doc) {
  add_counts<T>(registry, name, doc)
      .key("average",
           &T::Options::average,
           one_of({"macro", "weighted", "micro", "binary", "none"}),
           "how the scores of the classes are brought together; binary: that of class 1");
}

}  // namespace

ClassCounts::ClassCounts(const Options& options)
    : SumsMetric({{"counts", {options.classes, options.classes}}}), options_(options) {
  detail::require(options.classes >= 2, "classes of a metric", ">= 2", options.classes);
}

void ClassCounts::update(const Outputs& outputs, const Batch& batch) {
  const auto [rows, labels, counts] =
      detail::class_rows(name(),
                         outputs[options_.logits].detach(),
                         batch[options_.label],
                         options_.ignore_index.value_or(kIgnoredLabel),
                         options_.classes);
  // An ignored label, which may lie outside of the matrix, adds 0 to the first row.
  const at::Tensor row = labels.masked_fill(counts.logical_not(), 0);
  const at::Tensor cell = row.mul(options_.classes).add(guess_of(rows));
  sum(0).view({-1}).index_add_(0, cell, counts.to(at::kDouble));
}

at::Tensor ClassCounts::counts() const {
  return sum(0).cpu();
}

double ConfusionMatrix::compute() const {
  return counts().trace().item<double>() / counts().sum().item<double>();
}

std::vector<Metric::Value> ConfusionMatrix::values() const {
  const at::Tensor matrix = counts();
  const auto cells = matrix.accessor<double, 2>();
  std::vector<Value> values;
  for (int64_t label = 0; label < classes(); ++label) {
    for (int64_t guess = 0; guess < classes(); ++guess) {
      values.emplace_back(fmt::format("{}/{}", label, guess), cells[label][guess]);
    }
  }
  return values;
}

ClassScore::ClassScore(const char* metric, const Options& options)
    : ClassCounts(options), average_(options.average) {
  detail::require(average_ == "macro" || average_ == "weighted" || average_ == "micro" ||
                      average_ == "binary" || average_ == "none",
                  fmt::format("{}: average", metric),
                  R"("macro", "weighted", "micro", "binary" or "none")",
                  average_);
  detail::require(average_ != "binary" || options.classes == 2,
                  fmt::format("{}: classes", metric),
                  "2 for the binary average",
                  options.classes);
}

std::vector<double> ClassScore::scores() const {
  const at::Tensor matrix = counts();
  const at::Tensor right = matrix.diagonal();
  const at::Tensor wrong = matrix.sum(0).sub(right);
  const at::Tensor missed = matrix.sum(1).sub(right);
  std::vector<double> scores;
  for (int64_t i = 0; i < classes(); ++i) {
    const auto right_of = right[i].item<double>();
    const auto wrong_of = wrong[i].item<double>();
    const auto missed_of = missed[i].item<double>();
    const bool occurs = right_of + wrong_of + missed_of > 0;
    scores.push_back(occurs ? score(right_of, wrong_of, missed_of) : kNoValue);
  }
  return scores;
}

double ClassScore::compute() const {
  const at::Tensor matrix = counts();
  if (matrix.sum().item<double>() == 0) {
    return kNoValue;
  }
  if (average_ == "micro") {
    const double right = matrix.trace().item<double>();
    const double other = matrix.sum().item<double>() - right;
    return score(right, other, other);
  }
  const std::vector<double> scores = this->scores();
  if (average_ == "binary") {
    return std::isnan(scores[1]) ? 0.0 : scores[1];  // class 1 neither occurred nor was guessed
  }
  double total = 0.0;
  double weights = 0.0;
  for (int64_t i = 0; i < classes(); ++i) {
    if (const double score = scores[static_cast<size_t>(i)]; !std::isnan(score)) {
      const double weight = average_ == "weighted" ? matrix[i].sum().item<double>() : 1.0;
      total += weight * score;
      weights += weight;
    }
  }
  return total / weights;
}

std::vector<Metric::Value> ClassScore::values() const {
  if (average_ != "none") {
    return {{"", compute()}};
  }
  std::vector<Value> values;
  for (const double score : scores()) {
    values.emplace_back(std::to_string(values.size()), score);
  }
  values.emplace_back("", compute());
  return values;
}

double Precision::score(double right, double wrong, double) const {
  return right == 0 ? 0.0 : right / (right + wrong);
}

double Recall::score(double right, double, double missed) const {
  return right == 0 ? 0.0 : right / (right + missed);
}

double F1::score(double right, double wrong, double missed) const {
  return 2 * right / (2 * right + wrong + missed);
}

double IoU::score(double right, double wrong, double missed) const {
  return right / (right + wrong + missed);
}

void register_class_scores(Registry<Metric>& registry) {
  add_counts<ConfusionMatrix>(
      registry, "ConfusionMatrix", "Counts of each true class and predicted class.");
  add_score<Precision>(
      registry, "Precision", "Share of the predictions of a class that are right.");
  add_score<Recall>(
      registry, "Recall", "Share of a class's samples that were predicted as that class.");
  add_score<F1>(registry, "F1", "Harmonic mean of precision and recall.");
  add_score<IoU>(registry, "IoU", "Intersection over union of labels and predictions of a class.");
}

}  // namespace rondo
