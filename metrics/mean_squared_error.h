#pragma once

#include <string>
#include <vector>

#include "metrics/metric.h"

namespace rondo {

/// Mean of the squared differences between an output and a target of the same shape, over all
/// elements: a longer batch counts for more.
class MeanSquaredError final : public Metric {
 public:
  struct Options {
    std::string output = "logits";  ///< what the model predicts
    std::string target = "target";  ///< in the batch
  };

  explicit MeanSquaredError(const Options& options);

  std::string name() const override { return "mean_squared_error"; }

  std::optional<Better> better() const override { return Better::Lower; }

  /// \throws ShapeError  when the shapes differ
  /// \capture safe
  void update(const Outputs& outputs, const Batch& batch) override;

  double compute() const override;
  std::vector<NamedTensor> state() override;
  void reset() override;
  void to(c10::Device device) override;

 private:
  Options options_;
  at::Tensor total_;     // float64 []
  at::Tensor elements_;  // float64 []
};

}  // namespace rondo
