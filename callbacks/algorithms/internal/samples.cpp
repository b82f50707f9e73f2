#include "callbacks/algorithms/internal/samples.h"

#include <ATen/ops/_standard_gamma.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"

namespace rondo::detail {

at::Tensor shares_of(const at::Tensor& labels, const at::Tensor& logits) {
  if (labels.is_floating_point() && labels.sizes() == logits.sizes()) {
    return labels.to(logits.scalar_type());
  }
  if (labels.is_floating_point() || logits.dim() != labels.dim() + 1 ||
      logits.sizes().slice(0, static_cast<size_t>(labels.dim())) != labels.sizes()) {
    throw ShapeError(fmt::format(
        "labels must be integers, one for each row of logits, or shares of the logits' shape; the "
        "logits are [{}], the labels {}[{}]",
        fmt::join(logits.sizes(), ", "),
        toString(labels.scalar_type()),
        fmt::join(labels.sizes(), ", ")));
  }
  const at::Tensor index = labels.to(at::kLong).unsqueeze(-1);
  const at::Tensor counts = index.ge(0).to(logits.scalar_type());
  return at::zeros_like(logits.detach()).scatter(-1, index.clamp_min(0), counts);
}

at::Tensor random_beta(double alpha, const c10::Device& device) {
  const auto numbers = at::TensorOptions().dtype(at::kDouble).device(device);
  const at::Tensor drawn = at::_standard_gamma(at::full({2}, alpha, numbers));
  return drawn.select(0, 0).div(drawn.sum());
}

at::Tensor reordered(const at::Tensor& samples, const at::Tensor& index) {
  return samples.index_select(0, index);
}

void require_open_loss(const Outputs& outputs, const char* algorithm) {
  if (outputs.find("loss") != nullptr) {
    throw UsageError(
        fmt::format("{0} changes what the loss is computed from, and this model computed its loss "
                    "already; call with_loss (models/with_loss.h) in its forward",
                    algorithm));
  }
}

void require_images(const at::Tensor& images, const char* algorithm) {
  if (images.dim() != 4 || !images.is_floating_point()) {
    throw ShapeError(
        fmt::format("{}: pictures must be floating [B, channels, height, width], got {}[{}]",
                    algorithm,
                    toString(images.scalar_type()),
                    fmt::join(images.sizes(), ", ")));
  }
}

}  // namespace rondo::detail
