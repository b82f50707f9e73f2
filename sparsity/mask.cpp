#include "sparsity/mask.h"

#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <utility>

#include "core/error.h"

namespace rondo {

namespace {

/// The integer type as wide as an element of `weight`.
at::ScalarType bits_of(const std::string& name, const at::Tensor& weight) {
  switch (weight.is_floating_point() ? weight.element_size() : 0) {
    case 2:
      return at::kShort;
    case 4:
      return at::kInt;
    case 8:
      return at::kLong;
    default:
      throw NotSupportedError(fmt::format(
          "sparsity: \"{}\" is a {} tensor; expected a floating one", name, weight.toString()));
  }
}

}  // namespace

Mask::Mask(std::string name, at::Tensor weight)
    : name_(std::move(name)),
      weight_(std::move(weight)),
      bits_(at::full(weight_.sizes(), -1, weight_.options().dtype(bits_of(name_, weight_)))) {}

at::Tensor Mask::kept() const {
  return bits_.ne(0);
}

void Mask::set(const at::Tensor& kept) {
  bits_.copy_(kept).neg_();
}

void Mask::add_state(const at::Tensor& state) {
  if (state.sizes() == weight_.sizes()) {
    states_.push_back(state);
  }
}

// `masked_fill_` takes a hundred times as long as the bits (1M elements: 7.4 ms instead of 0.08).
void Mask::zero(const at::Tensor& tensor) const {
  if (tensor.element_size() == bits_.element_size()) {
    tensor.view(bits_.scalar_type()).bitwise_and_(bits_);
  } else {
    tensor.masked_fill_(bits_.eq(0), 0);
  }
}

void Mask::zero_weight() const {
  zero(weight_);
}

void Mask::zero_gradient() const {
  if (weight_.grad().defined()) {
    zero(weight_.grad());
  }
}

void Mask::zero_states() const {
  for (const at::Tensor& state : states_) {
    zero(state);
  }
}

}  // namespace rondo
