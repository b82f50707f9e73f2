#include "sparsity/algorithm.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/zeros_like.h>

namespace rondo {

at::Tensor top_mask(const at::Tensor& scores, const at::Tensor& count) {
  const at::Tensor order =
      at::argsort(scores.flatten(), /*stable=*/true, /*dim=*/0, /*descending=*/true);
  const at::Tensor places = at::arange(order.numel(), order.options());
  const at::Tensor rank = at::zeros_like(order).scatter(0, order, places);
  return rank.lt(count).view(scores.sizes());
}

}  // namespace rondo
