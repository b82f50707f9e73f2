#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "metrics/sums_metric.h"

namespace rondo {

/// Counts how often each class was taken for each: a row a label, a column a guess. The guess is
/// the class of the largest logit; a single logit a label, as binary cross entropy has it, means
/// class 1 where it is above 0. What derives from it makes numbers of the counts.
class ClassCounts : public SumsMetric {
 public:
  struct Options {
    std::string logits = "logits";             ///< an output
    std::string label = "label";               ///< in the batch
    int64_t classes = 2;                       ///< >= 2
    std::optional<int64_t> ignore_index = {};  ///< does not count; none: what the loss leaves out
  };

  void ignore(int64_t label) final {
    options_.ignore_index = options_.ignore_index.value_or(label);
  }

  Needs needs() const final { return {{options_.logits}, {options_.label}}; }

  /// \throws ShapeError  when there is not one label for each row of logits, or not one logit for
  ///                     each class
  /// \capture safe
  void update(const Outputs& outputs, const Batch& batch) final;

 protected:
  explicit ClassCounts(const Options& options);

  int64_t classes() const { return options_.classes; }

  /// On the host: float64 [classes, classes].
  at::Tensor counts() const;

 private:
  Options options_;
};

/// The counts themselves, as `confusion/<label>/<guess>`.
class ConfusionMatrix final : public ClassCounts {
 public:
  explicit ConfusionMatrix(const Options& options) : ClassCounts(options) {}

  std::string name() const override { return "confusion"; }

  /// The share of labels that were guessed right.
  double compute() const override;

  std::vector<Value> values() const override;
};

/// A score of each class, brought together as `average` says.
class ClassScore : public ClassCounts {
 public:
  struct Options : ClassCounts::Options {
    /// "macro": mean over the classes that occur as a label or a guess. "weighted": the same, by
    /// how often each is a label. "micro": of the summed counts. "binary": of class 1. "none": each
    /// class by itself, as `<name>/<class>`; the number that callbacks watch is the macro one.
    std::string average = "macro";
  };

  std::optional<Better> better() const final { return Better::Higher; }

  double compute() const final;
  std::vector<Value> values() const final;

 protected:
  ClassScore(const char* metric, const Options& options);

  /// Of a class, or of sums over classes: how often it was guessed right, guessed where it was
  /// not, and missed.
  virtual double score(double right, double wrong, double missed) const = 0;

 private:
  std::vector<double> scores() const;

  std::string average_;
};

/// The share of predictions of a class that are right.
class Precision final : public ClassScore {
 public:
  explicit Precision(const Options& options) : ClassScore("Precision", options) {}

  std::string name() const override { return "precision"; }

 private:
  double score(double right, double wrong, double missed) const override;
};

/// The share of a class's samples that were predicted as that class. The macro average is the
/// balanced accuracy.
class Recall final : public ClassScore {
 public:
  explicit Recall(const Options& options) : ClassScore("Recall", options) {}

  std::string name() const override { return "recall"; }

 private:
  double score(double right, double wrong, double missed) const override;
};

/// The harmonic mean of precision and recall; over pixels, it is Dice's coefficient.
class F1 final : public ClassScore {
 public:
  explicit F1(const Options& options) : ClassScore("F1", options) {}

  std::string name() const override { return "f1"; }

 private:
  double score(double right, double wrong, double missed) const override;
};

/// Intersection over union of what is and what was taken for a class, also called Jaccard's index.
class IoU final : public ClassScore {
 public:
  explicit IoU(const Options& options) : ClassScore("IoU", options) {}

  std::string name() const override { return "iou"; }

 private:
  double score(double right, double wrong, double missed) const override;
};

}  // namespace rondo
