#include "callbacks/core/precision_callback.h"

#include <ATen/autocast_mode.h>

#include "core/error.h"
#include "core/require.h"
#include "core/torch_compat.h"
#include "optim/clip.h"
#include "trainer/trainer.h"

namespace rondo {

PrecisionCallback::AutocastScope::AutocastScope(bool is_on, c10::DeviceType device)
    : is_on_(is_on), device_(device) {
  if (is_on_) {
    was_on_ = compat::autocast_enabled(device_);
    compat::set_autocast(device_, true);
    compat::set_autocast_dtype(device_, at::kBFloat16);
    at::autocast::increment_nesting();
  }
}

PrecisionCallback::AutocastScope::~AutocastScope() {
  if (is_on_) {
    if (at::autocast::decrement_nesting() == 0) {
      at::autocast::clear_cache();
    }
    compat::set_autocast(device_, was_on_);
  }
}

void PrecisionCallback::pre_setup(Trainer& trainer) {
  options_ = trainer.options().precision;
  const double norm = options_.max_gradient_norm.value_or(1.0);
  const double limit = options_.max_gradient_value.value_or(1.0);
  detail::require(options_.dtype == "fp32" || options_.dtype == "bf16",
                  "precision.dtype",
                  "\"fp32\" or \"bf16\"",
                  options_.dtype);
  detail::require(norm > 0.0, "precision.max_gradient_norm", "> 0", norm);
  detail::require(limit > 0.0, "precision.max_gradient_value", "> 0", limit);
  if (options_.max_gradient_norm && options_.max_gradient_value) {
    throw UsageError(
        "precision: max_gradient_norm and max_gradient_value exclude each other; give one of them");
  }
}

void PrecisionCallback::clip_gradients(Optimizer& optimizer) const {
  if (options_.max_gradient_norm) {
    clip_by_norm_(optimizer.grads(), *options_.max_gradient_norm);
  } else if (options_.max_gradient_value) {
    clip_by_value_(optimizer.grads(), *options_.max_gradient_value);
  }
}

}  // namespace rondo
