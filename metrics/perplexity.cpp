#include "metrics/perplexity.h"

#include <ATen/ops/zeros.h>

#include <cmath>

#include "core/error.h"

namespace rondo {

Perplexity::Perplexity(const Options& options)
    : options_(options), total_(at::zeros({}, at::kDouble)), tokens_(at::zeros({}, at::kDouble)) {}

void Perplexity::update(const Outputs& outputs, const Batch& batch) {
  const at::Tensor& loss = outputs[options_.output];
  if (loss.dim() != 0) {
    throw ShapeError("Perplexity: output \"" + options_.output +
                     "\" must have no dimensions, got " + std::to_string(loss.dim()));
  }
  const at::Tensor counts = batch[options_.targets].to(at::kLong).ne(options_.ignore_index);
  const at::Tensor tokens = counts.sum().to(at::kDouble);
  // The mean over no token is NaN; such a batch adds nothing.
  total_.add_(loss.detach().to(at::kDouble).mul(tokens).masked_fill(tokens.eq(0), 0));
  tokens_.add_(tokens);
}

double Perplexity::compute() const {
  return std::exp(total_.item<double>() / tokens_.item<double>());
}

std::vector<Metric::NamedTensor> Perplexity::state() {
  return {{"total", total_}, {"tokens", tokens_}};
}

void Perplexity::reset() {
  total_.zero_();
  tokens_.zero_();
}

void Perplexity::to(c10::Device device) {
  total_ = total_.to(device);
  tokens_ = tokens_.to(device);
}

}  // namespace rondo
