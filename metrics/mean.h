#pragma once

#include <string>

#include "metrics/sums_metric.h"

namespace rondo {

/// Mean of a 0-dim output over all samples: each batch counts by its size.
class Mean final : public SumsMetric {
 public:
  struct Options {
    std::string output = "loss";  ///< name of the output, and of the metric
  };

  explicit Mean(const Options& options);

  std::string name() const override { return output_; }

  Needs needs() const override { return {{output_}, {}}; }

  /// \throws ShapeError  when the output has dimensions
  /// \capture safe
  void update(const Outputs& outputs, const Batch& batch) override;

  double compute() const override;

 private:
  std::string output_;
};

}  // namespace rondo
