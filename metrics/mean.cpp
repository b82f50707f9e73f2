#include "metrics/mean.h"

#include <ATen/ops/zeros.h>

#include "core/error.h"

namespace rondo {

Mean::Mean(const Options& options)
    : output_(options.output),
      total_(at::zeros({}, at::kDouble)),
      samples_(at::zeros({}, at::kDouble)) {}

void Mean::update(const Outputs& outputs, const Batch& batch) {
  const at::Tensor& value = outputs[output_];
  if (value.dim() != 0) {
    throw ShapeError("Mean: output \"" + output_ + "\" must have no dimensions, got " +
                     std::to_string(value.dim()));
  }
  const auto samples = static_cast<double>(batch.size());
  total_.add_(value.detach().to(at::kDouble), samples);
  samples_.add_(samples);
}

double Mean::compute() const {
  return total_.item<double>() / samples_.item<double>();
}

std::vector<Metric::NamedTensor> Mean::state() {
  return {{"total", total_}, {"samples", samples_}};
}

void Mean::reset() {
  total_.zero_();
  samples_.zero_();
}

void Mean::to(c10::Device device) {
  total_ = total_.to(device);
  samples_ = samples_.to(device);
}

}  // namespace rondo
