#include "metrics/sums_metric.h"

#include <ATen/ops/zeros.h>

namespace rondo {

SumsMetric::SumsMetric(const std::vector<Sum>& sums) {
  for (const Sum& sum : sums) {
    sums_.emplace_back(sum.name, at::zeros(sum.shape, at::kDouble));
  }
}

void SumsMetric::reset() {
  for (const NamedTensor& sum : sums_) {
    sum.second.zero_();
  }
}

void SumsMetric::to(c10::Device device) {
  for (NamedTensor& sum : sums_) {
    sum.second = sum.second.to(device);
  }
}

double SumsMetric::number(size_t i) const {
  return sums_[i].second.item<double>();
}

}  // namespace rondo
