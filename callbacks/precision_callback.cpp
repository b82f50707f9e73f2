#include "callbacks/precision_callback.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "core/error.h"
#include "core/torch_compat.h"
#include "optim/clip.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

void require_positive(const char* name, const std::optional<double>& value) {
  if (value && !(*value > 0.0)) {
    throw UsageError(fmt::format("precision.{}: expected a number > 0, got {}", name, *value));
  }
}

}  // namespace

PrecisionCallback::AutocastScope::AutocastScope(bool is_on) : is_on_(is_on) {
  if (is_on_) {
    was_on_ = compat::cpu_autocast_enabled();
    compat::set_cpu_autocast(true);
    compat::set_cpu_autocast_dtype(at::kBFloat16);
    at::autocast::increment_nesting();
  }
}

PrecisionCallback::AutocastScope::~AutocastScope() {
  if (is_on_) {
    if (at::autocast::decrement_nesting() == 0) {
      at::autocast::clear_cache();
    }
    compat::set_cpu_autocast(was_on_);
  }
}

void PrecisionCallback::pre_setup(Trainer& trainer) {
  options_ = trainer.options().precision;
  if (options_.dtype != "fp32" && options_.dtype != "bf16") {
    throw UsageError(
        fmt::format("precision.dtype: expected \"fp32\" or \"bf16\", got \"{}\"", options_.dtype));
  }
  require_positive("max_gradient_norm", options_.max_gradient_norm);
  require_positive("max_gradient_value", options_.max_gradient_value);
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
