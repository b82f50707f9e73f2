#include "sparsity/mask_group.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/require.h"
#include "sparsity/algorithms.h"

namespace rondo {

namespace {

/// The tensors of all masks, flattened and joined.
template <class Get>
at::Tensor joined(const std::vector<Mask>& masks, const Get& get) {
  std::vector<at::Tensor> flat;
  for (size_t i = 0; i < masks.size(); ++i) {
    flat.push_back(get(i).flatten());
  }
  return at::cat(flat);
}

/// Gives each mask its part of `kept`.
void set_all(std::vector<Mask>& masks, const at::Tensor& kept) {
  int64_t begin = 0;
  for (Mask& mask : masks) {
    const int64_t size = mask.weight().numel();
    mask.set(kept.narrow(0, begin, size).view(mask.weight().sizes()));
    begin += size;
  }
}

int64_t elements_of(const std::vector<Mask>& masks) {
  int64_t elements = 0;
  for (const Mask& mask : masks) {
    elements += mask.weight().numel();
  }
  return elements;
}

int64_t kept_of(int64_t elements, double share) {
  return elements - std::llround(share * static_cast<double>(elements));
}

}  // namespace

MaskGroup::MaskGroup(SparsityOptions options)
    : options_(std::move(options)),
      algorithm_(options_.algorithm ? options_.algorithm.make()
                                    : std::make_unique<StaticSparsity>()) {
  options_.sparsity.check();
  detail::require(
      options_.init == "topk" || options_.init == "random" || options_.init == "from_zeros",
      "sparsity: init",
      R"("topk", "random" or "from_zeros")",
      options_.init);
  detail::require(options_.distribution == "balanced" || is_global(),
                  "sparsity: distribution",
                  "\"balanced\" or \"global\"",
                  options_.distribution);
  algorithm_->check(options_.sparsity);
}

at::Tensor MaskGroup::first_scores(const Mask& mask) const {
  const at::Tensor weight = mask.updated().detach();
  return options_.init == "random" ? at::rand(weight.sizes(), weight.options().dtype(at::kDouble))
                                   : weight.abs().to(at::kDouble);
}

// The tensors are made once: recorded steps read them.
void MaskGroup::count_kept(double share) {
  const size_t counts = is_global() ? 1 : masks_.size();
  const at::Device device = masks_.front().weight().device();
  while (kept_.size() < counts) {
    kept_.push_back(at::zeros({}, at::TensorOptions().dtype(at::kLong).device(device)));
    keys_.push_back(at::zeros_like(kept_.back()));
  }
  if (!progress_.defined()) {
    progress_ = at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(device));
  }
  for (size_t i = 0; i < counts; ++i) {
    const int64_t elements = is_global() ? elements_of(masks_) : masks_[i].weight().numel();
    kept_[i].fill_(kept_of(elements, share));
  }
}

void MaskGroup::choose() {
  count_kept(options_.sparsity.at(0.0));
  if (options_.init == "from_zeros") {
    for (Mask& mask : masks_) {
      mask.set(mask.weight().detach().ne(0));
    }
  } else if (is_global()) {
    set_all(masks_,
            top_mask(joined(masks_, [this](size_t i) { return first_scores(masks_[i]); }),
                     kept_.front()));
  } else {
    for (size_t i = 0; i < masks_.size(); ++i) {
      masks_[i].set(top_mask(first_scores(masks_[i]), kept_[i]));
    }
  }
}

void MaskGroup::aim(double done, KeyedRandom keys) {
  is_due_ = true;
  count_kept(options_.sparsity.at(done));
  progress_.fill_(done);
  for (at::Tensor& key : keys_) {
    key.fill_(static_cast<int64_t>(keys.next()));
  }
}

void MaskGroup::keep_gradients() {
  if (!algorithm_->needs_gradient()) {
    return;
  }
  gradients_.clear();
  for (const Mask& mask : masks_) {
    const at::Tensor& gradient = mask.updated().grad();
    gradients_.push_back(gradient.defined() ? gradient.detach().clone()
                                            : at::zeros_like(mask.updated().detach()));
  }
}

at::Tensor MaskGroup::next_mask(const MaskedWeights& weights) const {
  at::Tensor mask = algorithm_->next_mask(weights);
  if (!mask.defined() || mask.scalar_type() != at::kBool ||
      mask.sizes() != weights.weight.sizes()) {
    throw ShapeError(fmt::format(
        "sparsity: {}.next_mask must return a bool tensor of the weight's shape, got {}",
        options_.algorithm.name(),
        mask.defined() ? mask.toString() : "an undefined tensor"));
  }
  return mask;
}

void MaskGroup::change() {
  const bool has_gradients = !gradients_.empty();
  const auto weight = [this](size_t i) { return masks_[i].updated().detach(); };
  const auto mask = [this](size_t i) { return masks_[i].kept(); };
  const auto gradient = [this](size_t i) { return gradients_[i]; };
  if (is_global()) {
    set_all(masks_,
            next_mask({joined(masks_, weight),
                       has_gradients ? joined(masks_, gradient) : at::Tensor(),
                       joined(masks_, mask),
                       kept_.front(),
                       progress_,
                       keys_.front()}));
  } else {
    for (size_t i = 0; i < masks_.size(); ++i) {
      masks_[i].set(next_mask({weight(i),
                               has_gradients ? gradient(i) : at::Tensor(),
                               mask(i),
                               kept_[i],
                               progress_,
                               keys_[i]}));
    }
  }
  gradients_.clear();
}

NamedTensors MaskGroup::numbers(const std::string& prefix) const {
  NamedTensors numbers;
  if (!changes_masks()) {
    return numbers;
  }
  for (size_t i = 0; i < kept_.size(); ++i) {
    numbers.emplace_back(fmt::format("{}kept/{}", prefix, i), kept_[i]);
    numbers.emplace_back(fmt::format("{}key/{}", prefix, i), keys_[i]);
  }
  numbers.emplace_back(prefix + "progress", progress_);
  return numbers;
}

}  // namespace rondo
