#pragma once

#include <string>
#include <vector>

#include "metrics/metric.h"

namespace rondo {

/// A metric whose state is float64 sums that begin at zero: derive from it, add to the sums in
/// `update`, and say in `compute` what they come to. A sum over batches does not depend on how the
/// samples were batched.
class SumsMetric : public Metric {
 public:
  std::vector<NamedTensor> state() final { return sums_; }

  void reset() final;
  void to(c10::Device device) final;

 protected:
  struct Sum {
    std::string name;
    std::vector<int64_t> shape = {};
  };

  explicit SumsMetric(const std::vector<Sum>& sums);

  /// The i-th sum, in the order in which the constructor named them.
  at::Tensor sum(size_t i) const { return sums_[i].second; }

  /// A sum without dimensions, on the host.
  double number(size_t i) const;

 private:
  std::vector<NamedTensor> sums_;
};

}  // namespace rondo
