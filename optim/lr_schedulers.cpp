#include "optim/lr_schedulers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "optim/internal/scheduler_options.h"
#include "optim/register.h"

namespace rondo {

namespace {

using detail::add_target_keys;
using detail::resolved;
using detail::target_of;

constexpr double kPi = 3.14159265358979323846;

void check_finite(const char* option, double value) {
  if (!std::isfinite(value)) {
    throw UsageError(fmt::format("{}: expected a finite number, got {}", option, value));
  }
}

int64_t resolved_or_endless(const char* option,
                            const std::optional<Time>& time,
                            const RunLength& run) {
  return time ? resolved(option, *time, 0, run) : kEndless;
}

/// How much of `total` is done, in [0, 1]; all of nothing.
double progress(int64_t updates, int64_t total) {
  return updates >= total ? 1.0 : static_cast<double>(updates) / static_cast<double>(total);
}

}  // namespace

ConstantLR::ConstantLR(const Options& options) : Scheduler(target_of(options)), options_(options) {
  check_finite("ConstantLR.learning_rate", options.learning_rate);
}

void ConstantLR::resolve(const RunLength& run) {
  total_ = resolved_or_endless("ConstantLR.total_iters", options_.total_iters, run);
}

double ConstantLR::value(int64_t /*updates*/) const {
  return options_.learning_rate;
}

LinearLR::LinearLR(const Options& options) : Scheduler(target_of(options)), options_(options) {
  check_finite("LinearLR.initial_learning_rate", options.initial_learning_rate);
  check_finite("LinearLR.end_learning_rate", options.end_learning_rate);
}

void LinearLR::resolve(const RunLength& run) {
  total_ = resolved("LinearLR.total_iters", options_.total_iters, 0, run);
}

double LinearLR::value(int64_t updates) const {
  if (updates >= total_) {
    return options_.end_learning_rate;  // exactly, whatever the rounding of the sum below
  }
  return options_.initial_learning_rate +
         (options_.end_learning_rate - options_.initial_learning_rate) * progress(updates, total_);
}

CosineDecayLR::CosineDecayLR(const Options& options)
    : Scheduler(target_of(options)), options_(options) {
  check_finite("CosineDecayLR.initial_learning_rate", options.initial_learning_rate);
  check_finite("CosineDecayLR.end_learning_rate", options.end_learning_rate);
}

void CosineDecayLR::resolve(const RunLength& run) {
  total_ = resolved("CosineDecayLR.total_iters", options_.total_iters, 0, run);
}

double CosineDecayLR::value(int64_t updates) const {
  const double share_left = 0.5 * (1.0 + std::cos(kPi * progress(updates, total_)));
  return options_.end_learning_rate +
         (options_.initial_learning_rate - options_.end_learning_rate) * share_left;
}

StepLR::StepLR(const Options& options) : Scheduler(target_of(options)), options_(options) {
  check_finite("StepLR.initial_learning_rate", options.initial_learning_rate);
  check_finite("StepLR.gamma", options.gamma);
}

void StepLR::resolve(const RunLength& run) {
  step_ = resolved("StepLR.step_size", options_.step_size, 1, run);
  total_ = resolved_or_endless("StepLR.total_iters", options_.total_iters, run);
}

double StepLR::value(int64_t updates) const {
  const int64_t steps = std::min(updates, total_) / step_;
  return options_.initial_learning_rate * std::pow(options_.gamma, static_cast<double>(steps));
}

void register_constant_lr(Registry<Scheduler>& registry) {
  using Options = ConstantLR::Options;
  auto& keys = registry.add<ConstantLR>("ConstantLR", "Always the same value.");
  keys.key("learning_rate", &Options::learning_rate, "the value")
      .required()
      .key("total_iters",
           &Options::total_iters,
           known_in_updates(),
           "how long it lasts in a sequence; absent: for ever");
  add_target_keys(keys);
}

void register_linear_lr(Registry<Scheduler>& registry) {
  using Options = LinearLR::Options;
  auto& keys = registry.add<LinearLR>("LinearLR", "A straight line, then its end.");
  keys.key("initial_learning_rate", &Options::initial_learning_rate, "the value at first")
      .required()
      .key("end_learning_rate", &Options::end_learning_rate, "the value at the end and after it")
      .key("total_iters",
           &Options::total_iters,
           known_in_updates(),
           "how long the way to the end is");
  add_target_keys(keys);
}

void register_cosine_decay_lr(Registry<Scheduler>& registry) {
  using Options = CosineDecayLR::Options;
  auto& keys = registry.add<CosineDecayLR>("CosineDecayLR", "Half a cosine, then its end.");
  keys.key("initial_learning_rate", &Options::initial_learning_rate, "the value at first")
      .required()
      .key("end_learning_rate", &Options::end_learning_rate, "the value at the end and after it")
      .key("total_iters",
           &Options::total_iters,
           known_in_updates(),
           "how long the way to the end is");
  add_target_keys(keys);
}

void register_step_lr(Registry<Scheduler>& registry) {
  using Options = StepLR::Options;
  auto& keys = registry.add<StepLR>("StepLR", "Multiplied by gamma every step_size.");
  keys.key("initial_learning_rate", &Options::initial_learning_rate, "the value at first")
      .required()
      .key("step_size", &Options::step_size, known_in_updates(), "how long a value stays")
      .required()
      .key("gamma", &Options::gamma, "factor from one value to the next")
      .key("total_iters",
           &Options::total_iters,
           known_in_updates(),
           "how long it lasts in a sequence; absent: for ever");
  add_target_keys(keys);
}

}  // namespace rondo
