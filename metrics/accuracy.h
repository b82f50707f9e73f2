#pragma once

#include <cstdint>
#include <string>

#include "metrics/sums_metric.h"

namespace rondo {

/// The share of labels that are among the `top_k` largest logits. Logits are [..., classes], labels
/// integer [...]: a token counts as much as an image does. Labels that a loss ignores are left out.
class Accuracy final : public SumsMetric {
 public:
  struct Options {
    std::string logits = "logits";  ///< an output
    std::string label = "label";    ///< in the batch
    int64_t ignore_index = -100;    ///< a label that does not count, as LibTorch's losses have it
    int64_t top_k = 1;              ///< >= 1
  };

  explicit Accuracy(const Options& options);

  /// "accuracy", or such as "top_5_accuracy".
  std::string name() const override;

  std::optional<Better> better() const override { return Better::Higher; }

  Needs needs() const override { return {{options_.logits}, {options_.label}}; }

  /// \throws ShapeError  when there is not one label for each row of logits, or fewer than `top_k`
  ///                     classes
  /// \capture safe
  void update(const Outputs& outputs, const Batch& batch) override;

  double compute() const override;

 private:
  Options options_;
};

}  // namespace rondo
