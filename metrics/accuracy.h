#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "metrics/sums_metric.h"

namespace rondo {

/// The share of labels that are among the `top_k` largest logits. Logits are [..., classes], labels
/// integer [...]: a token counts as much as an image does. Labels that a loss ignores are left out.
class Accuracy final : public SumsMetric {
 public:
  struct Options {
    std::string logits = "logits";             ///< an output
    std::string label = "label";               ///< in the batch
    std::optional<int64_t> ignore_index = {};  ///< does not count; none: what the loss leaves out
    int64_t top_k = 1;                         ///< >= 1
  };

  explicit Accuracy(const Options& options);

  /// "accuracy", or such as "top_5_accuracy".
  std::string name() const override;

  std::optional<Better> better() const override { return Better::Higher; }

  void ignore(int64_t label) override {
    options_.ignore_index = options_.ignore_index.value_or(label);
  }

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
