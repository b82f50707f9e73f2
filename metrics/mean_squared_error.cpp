#include "metrics/mean_squared_error.h"

#include <ATen/ops/zeros.h>
#include <c10/util/StringUtil.h>

#include "core/error.h"

namespace rondo {

MeanSquaredError::MeanSquaredError(const Options& options)
    : options_(options),
      total_(at::zeros({}, at::kDouble)),
      elements_(at::zeros({}, at::kDouble)) {}

void MeanSquaredError::update(const Outputs& outputs, const Batch& batch) {
  const at::Tensor output = outputs[options_.output].detach();
  const at::Tensor& target = batch[options_.target];
  if (output.sizes() != target.sizes()) {
    throw ShapeError(c10::str("MeanSquaredError: output \"",
                              options_.output,
                              "\" is ",
                              output.sizes(),
                              ", \"",
                              options_.target,
                              "\" is ",
                              target.sizes()));
  }
  total_.add_(output.sub(target).to(at::kDouble).square().sum());
  elements_.add_(static_cast<double>(output.numel()));
}

double MeanSquaredError::compute() const {
  return total_.item<double>() / elements_.item<double>();
}

std::vector<Metric::NamedTensor> MeanSquaredError::state() {
  return {{"total", total_}, {"elements", elements_}};
}

void MeanSquaredError::reset() {
  total_.zero_();
  elements_.zero_();
}

void MeanSquaredError::to(c10::Device device) {
  total_ = total_.to(device);
  elements_ = elements_.to(device);
}

}  // namespace rondo
