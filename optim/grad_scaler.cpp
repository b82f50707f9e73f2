#include "optim/grad_scaler.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <limits>

#include "core/error.h"

namespace rondo {

namespace {

at::Tensor zero_count(c10::Device device) {
  return at::zeros({}, at::TensorOptions().dtype(at::kLong).device(device));
}

}  // namespace

GradScaler::GradScaler(const Options& options, c10::Device device)
    : options_(options),
      scale_(at::full({}, options.initial, at::TensorOptions().dtype(at::kFloat).device(device))),
      growth_tracker_(zero_count(device)),
      skipped_(zero_count(device)) {}

at::Tensor GradScaler::scaled(const at::Tensor& loss) const {
  return loss * scale_;
}

at::Tensor GradScaler::unscale_(const std::vector<at::Tensor>& grads) const {
  const at::NoGradGuard no_grad;
  const at::Tensor inverse = scale_.to(at::kDouble).reciprocal().to(at::kFloat);
  // Zero times an element is not zero where the element is NaN or infinite, nor is the sum then.
  std::vector<at::Tensor> sums = {inverse.mul(0)};
  for (const at::Tensor& grad : grads) {
    grad.mul_(inverse);
    sums.push_back(grad.mul(0).sum().to(at::kFloat));
  }
  return at::stack(sums).sum().ne(0);
}

at::Tensor GradScaler::move_on(const at::Tensor& found_bad) {
  const at::NoGradGuard no_grad;
  skipped_.add_(found_bad);
  if (!options_.is_dynamic) {
    return found_bad.logical_and(found_bad.logical_not());
  }
  const at::Tensor is_least = at::logical_and(found_bad, scale_.le(options_.least));
  const at::Tensor tracker = (growth_tracker_ + 1) * found_bad.logical_not();
  const at::Tensor grows = tracker.ge(options_.steps_per_increase);
  const at::Tensor grown = at::where(grows, scale_ * options_.growth, scale_);
  const at::Tensor moved = at::where(found_bad, scale_ * options_.backoff, grown);
  const double most = options_.most.value_or(std::numeric_limits<float>::max());
  scale_.copy_(at::clamp(moved, options_.least, most));
  growth_tracker_.copy_(tracker * grows.logical_not());
  return is_least;
}

NamedTensors GradScaler::captured_state() const {
  return {{"scale", scale_}, {"growth_tracker", growth_tracker_}, {"skipped_steps", skipped_}};
}

StateDict GradScaler::state_dict() const {
  StateDict state;
  for (const NamedTensor& tensor : captured_state()) {
    state.set(tensor.first, tensor.second);
  }
  return state;
}

void GradScaler::check(const StateDict& state) const {
  for (const NamedTensor& own : captured_state()) {
    const StateValue* found = state.find(own.first);
    const bool fits = found != nullptr && found->is_tensor() && found->as_tensor().numel() == 1 &&
                      found->as_tensor().scalar_type() == own.second.scalar_type();
    if (!fits) {
      throw CheckpointError(fmt::format("grad_scaler/{}: expected {}, found {}",
                                        own.first,
                                        StateValue(own.second).kind(),
                                        found == nullptr ? "nothing" : found->kind()));
    }
  }
}

void GradScaler::load(const StateDict& state) {
  check(state);
  const at::NoGradGuard no_grad;
  for (const NamedTensor& own : captured_state()) {
    own.second.copy_(state.at(own.first).as_tensor().reshape({}));
  }
}

}  // namespace rondo
