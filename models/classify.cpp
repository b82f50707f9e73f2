#include "models/internal/classify.h"

#include <ATen/ops/cross_entropy_loss.h>

namespace rondo::detail {

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& label) {
  return at::cross_entropy_loss(logits.reshape({-1, logits.size(-1)}), label.reshape({-1}));
}

Outputs classify(const at::Tensor& logits, const Batch& batch, const std::string& label) {
  if (const at::Tensor* found = batch.find(label)) {
    return {{"loss", cross_entropy(logits, *found)}, {"logits", logits}};
  }
  return {{"logits", logits}};
}

}  // namespace rondo::detail
