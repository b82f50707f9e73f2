#include "metrics/accuracy.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "core/error.h"

namespace rondo {

Accuracy::Accuracy(const Options& options)
    : options_(options),
      correct_(at::zeros({}, at::kDouble)),
      labels_(at::zeros({}, at::kDouble)) {}

void Accuracy::update(const Outputs& outputs, const Batch& batch) {
  const at::Tensor& logits = outputs[options_.logits];
  const at::Tensor& label = batch[options_.label];
  if (logits.dim() == 0 || logits.numel() != label.numel() * logits.size(-1)) {
    throw ShapeError(fmt::format("Accuracy: {} logits do not make one row for each of {} labels",
                                 logits.numel(),
                                 label.numel()));
  }
  const at::Tensor labels = label.flatten().to(at::kLong);  // the ignored one may need its width
  const at::Tensor counts = labels.ne(options_.ignore_index);
  const at::Tensor guess = logits.detach().argmax(-1).flatten();
  correct_.add_(guess.eq(labels).logical_and(counts).sum());
  labels_.add_(counts.sum());
}

double Accuracy::compute() const {
  return correct_.item<double>() / labels_.item<double>();
}

std::vector<Metric::NamedTensor> Accuracy::state() {
  return {{"correct", correct_}, {"labels", labels_}};
}

void Accuracy::reset() {
  correct_.zero_();
  labels_.zero_();
}

void Accuracy::to(c10::Device device) {
  correct_ = correct_.to(device);
  labels_ = labels_.to(device);
}

}  // namespace rondo
