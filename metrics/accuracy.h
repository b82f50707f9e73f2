#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "metrics/metric.h"

namespace rondo {

/// The share of labels at which the largest logit stands. Logits are [..., classes], labels integer
/// [...]: a token counts as much as an image does. Labels that a loss ignores are left out.
class Accuracy final : public Metric {
 public:
  struct Options {
    std::string logits = "logits";  ///< an output
    std::string label = "label";    ///< in the batch
    int64_t ignore_index = -100;    ///< a label that does not count, as LibTorch's losses have it
  };

  explicit Accuracy(const Options& options);

  std::string name() const override { return "accuracy"; }

  std::optional<Better> better() const override { return Better::Higher; }

  /// \throws ShapeError  when there is not one label for each row of logits
  /// \capture safe
  void update(const Outputs& outputs, const Batch& batch) override;

  double compute() const override;
  std::vector<NamedTensor> state() override;
  void reset() override;
  void to(c10::Device device) override;

 private:
  Options options_;
  at::Tensor correct_;  // float64 []
  at::Tensor labels_;   // float64 []
};

}  // namespace rondo
