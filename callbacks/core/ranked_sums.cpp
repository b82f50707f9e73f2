#include "callbacks/core/ranked_sums.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <utility>

namespace rondo {

namespace {

at::Tensor joined(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& tensor : tensors) {
    flat.push_back(tensor.detach().cpu().reshape({-1}));
  }
  return at::cat(flat);
}

}  // namespace

void RankedSums::begin(std::vector<at::Tensor> sums, const RankRange& range) {
  sums_ = std::move(sums);
  range_ = range;
  in_use_ = 0;
  kept_.clear();
  for (int64_t rank = 0; range.own > 1 && rank < range.own; ++rank) {
    std::vector<at::Tensor>& kept = kept_.emplace_back();
    for (const at::Tensor& sum : sums_) {
      kept.push_back(sum.clone());
    }
  }
}

void RankedSums::use(int64_t rank) {
  const auto index = static_cast<size_t>(rank - range_.first);
  if (kept_.empty() || index == in_use_) {
    return;
  }
  keep();
  in_use_ = index;
  for (size_t i = 0; i < sums_.size(); ++i) {
    sums_[i].copy_(kept_[index][i]);
  }
}

void RankedSums::keep() {
  for (size_t i = 0; i < sums_.size(); ++i) {
    kept_[in_use_][i].copy_(sums_[i]);
  }
}

void RankedSums::finish(Communicator& communicator) {
  if (sums_.empty()) {
    return;
  }
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  if (kept_.empty()) {
    parts.push_back(joined(sums_));
  } else {
    keep();
    for (const std::vector<at::Tensor>& kept : kept_) {
      parts.push_back(joined(kept));
    }
    tree_sum(parts);
  }
  communicator.all_reduce(parts.front());
  int64_t at = 0;
  for (const at::Tensor& sum : sums_) {
    sum.copy_(parts.front().narrow(0, at, sum.numel()).view(sum.sizes()));
    at += sum.numel();
  }
}

}  // namespace rondo
