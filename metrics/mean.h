#pragma once

#include <string>
#include <vector>

#include "metrics/metric.h"

namespace rondo {

/// Mean of a 0-dim output over all samples: each batch counts by its size.
class Mean final : public Metric {
 public:
  struct Options {
    std::string output = "loss";  ///< name of the output, and of the metric
  };

  explicit Mean(const Options& options);

  std::string name() const override { return output_; }

  /// \throws ShapeError  when the output has dimensions
  /// \capture safe
  void update(const Outputs& outputs, const Batch& batch) override;

  double compute() const override;
  std::vector<NamedTensor> state() override;
  void reset() override;
  void to(c10::Device device) override;

 private:
  std::string output_;
  at::Tensor total_;    // float64 []
  at::Tensor samples_;  // float64 []
};

}  // namespace rondo
