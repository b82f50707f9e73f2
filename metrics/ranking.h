#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "metrics/sums_metric.h"

namespace rondo {

/// How well the probability of a class ranks what is of it above what is not. Probabilities are
/// counted in `bins` of equal width, so that the state has one size whatever the data, as
/// torchmetrics does with `thresholds`: what lies in one bin counts as a tie. Two classes: the
/// ranking by class 1. More: each class against all others, and the mean over those that occur.
/// The curve, of each class where there are more than two, is logged as a table.
class Ranking : public SumsMetric {
 public:
  struct Options {
    std::string logits = "logits";             ///< an output: [..., classes], or one logit a label
    std::string label = "label";               ///< in the batch
    int64_t classes = 2;                       ///< >= 2
    int64_t bins = 1000;                       ///< >= 2
    std::optional<int64_t> ignore_index = {};  ///< does not count; none: what the loss leaves out
  };

  std::optional<Better> better() const final { return Better::Higher; }

  void ignore(int64_t label) final {
    options_.ignore_index = options_.ignore_index.value_or(label);
  }

  Needs needs() const final { return {{options_.logits}, {options_.label}}; }

  /// \throws ShapeError  when there is not one label for each row of logits, or not one logit for
  ///                     each class
  /// \capture safe
  void update(const Outputs& outputs, const Batch& batch) final;

  double compute() const final;

  /// "curve", or "curve/<class>": at most 100 points. None of more than 20 classes.
  std::vector<Media> media() const final;

 protected:
  explicit Ranking(const Options& options);

  /// How many of a class, and of the others, are in the bins from the highest one down to one of
  /// them; and how many there are of each.
  struct Counts {
    double of_class = 0.0;
    double others = 0.0;
    double all_of_class = 0.0;
    double all_others = 0.0;
  };

  /// The names of a point's coordinates, of which the first is the horizontal one.
  virtual std::pair<const char*, const char*> axes() const = 0;

  virtual std::pair<double, double> point(const Counts& counts) const = 0;

  /// Of one class, from the highest bin to the lowest: how many of a bin are of the class, and how
  /// many are not. Both occur.
  virtual double area(const std::vector<double>& of_class,
                      const std::vector<double>& others) const = 0;

 private:
  Options options_;
};

/// Area under the receiver operating characteristic: how likely something of the class is ranked
/// above something that is not.
class Auroc final : public Ranking {
 public:
  explicit Auroc(const Options& options) : Ranking(options) {}

  std::string name() const override { return "auroc"; }

 private:
  std::pair<const char*, const char*> axes() const override;
  std::pair<double, double> point(const Counts& counts) const override;
  double area(const std::vector<double>& of_class,
              const std::vector<double>& others) const override;
};

/// Area under the curve of precision over recall, as the sum over the thresholds of precision times
/// the recall gained: the average precision.
class AveragePrecision final : public Ranking {
 public:
  explicit AveragePrecision(const Options& options) : Ranking(options) {}

  std::string name() const override { return "average_precision"; }

 private:
  std::pair<const char*, const char*> axes() const override;
  std::pair<double, double> point(const Counts& counts) const override;
  double area(const std::vector<double>& of_class,
              const std::vector<double>& others) const override;
};

}  // namespace rondo
