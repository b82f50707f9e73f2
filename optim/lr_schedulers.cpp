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
using detail::target_of;

constexpr double kPi = 3.14159265358979323846;

void check_finite(const char* option, double value) {
  if (!std::isfinite(value)) {
    throw UsageError(fmt::format("{}: expected a finite number, got {}", option, value));
  }
}

double counted_or_endless(DurationCounter& counter,
                          const char* option,
                          const std::optional<Time>& time) {
  return time ? counter.count(option, *time, 0) : kEndless;
}

/// How much of `total` is done, in [0, 1]; all of nothing.
double progress(double done, double total) {
  return done >= total ? 1.0 : done / total;
}

}  // namespace

ConstantLR::ConstantLR(const Options& options) : Scheduler(target_of(options)), options_(options) {
  check_finite("ConstantLR.learning_rate", options.learning_rate);
}

void ConstantLR::count_durations(DurationCounter& counter) {
  total_ = counted_or_endless(counter, "ConstantLR.total_iters", options_.total_iters);
}

double ConstantLR::value(double /*done*/) const {
  return options_.learning_rate;
}

LinearLR::LinearLR(const Options& options) : Scheduler(target_of(options)), options_(options) {
  check_finite("LinearLR.initial_learning_rate", options.initial_learning_rate);
  check_finite("LinearLR.end_learning_rate", options.end_learning_rate);
}

void LinearLR::count_durations(DurationCounter& counter) {
  total_ = counter.count("LinearLR.total_iters", options_.total_iters, 0);
}

double LinearLR::value(double done) const {
  if (done >= total_) {
    return options_.end_learning_rate;  // exactly, whatever the rounding of the sum below
  }
  return options_.initial_learning_rate +
         (options_.end_learning_rate - options_.initial_learning_rate) * progress(done, total_);
}

CosineDecayLR::CosineDecayLR(const Options& options)
    : Scheduler(target_of(options)), options_(options) {
  check_finite("CosineDecayLR.initial_learning_rate", options.initial_learning_rate);
  check_finite("CosineDecayLR.end_learning_rate", options.end_learning_rate);
}

void CosineDecayLR::count_durations(DurationCounter& counter) {
  total_ = counter.count("CosineDecayLR.total_iters", options_.total_iters, 0);
}

double CosineDecayLR::value(double done) const {
  const double share_left = 0.5 * (1.0 + std::cos(kPi * progress(done, total_)));
  return options_.end_learning_rate +
         (options_.initial_learning_rate - options_.end_learning_rate) * share_left;
}

StepLR::StepLR(const Options& options) : Scheduler(target_of(options)), options_(options) {
  check_finite("StepLR.initial_learning_rate", options.initial_learning_rate);
  check_finite("StepLR.gamma", options.gamma);
}

void StepLR::count_durations(DurationCounter& counter) {
  step_ = counter.count("StepLR.step_size", options_.step_size, 1);
  total_ = counted_or_endless(counter, "StepLR.total_iters", options_.total_iters);
}

double StepLR::value(double done) const {
  const double steps = std::floor(std::min(done, total_) / step_);
  return options_.initial_learning_rate * std::pow(options_.gamma, steps);
}

void register_constant_lr(Registry<Scheduler>& registry) {
  using Options = ConstantLR::Options;
  auto& keys = registry.add<ConstantLR>("ConstantLR", "Always the same value.");
  keys.key("learning_rate", &Options::learning_rate, "the value")
      .required()
      .key("total_iters",
           &Options::total_iters,
           at_least(0),
           "how long it lasts in a sequence; absent: forever");
  add_target_keys(keys);
}

void register_linear_lr(Registry<Scheduler>& registry) {
  using Options = LinearLR::Options;
  auto& keys = registry.add<LinearLR>("LinearLR", "A straight line, then its end.");
  keys.key("initial_learning_rate", &Options::initial_learning_rate, "the first value")
      .required()
      .key("end_learning_rate", &Options::end_learning_rate, "the value at the end and after it")
      .key("total_iters",
           &Options::total_iters,
           at_least(0),
           "how long the schedule takes to reach its end");
  add_target_keys(keys);
}

void register_cosine_decay_lr(Registry<Scheduler>& registry) {
  using Options = CosineDecayLR::Options;
  auto& keys = registry.add<CosineDecayLR>("CosineDecayLR", "Half a cosine, then its end.");
  keys.key("initial_learning_rate", &Options::initial_learning_rate, "the first value")
      .required()
      .key("end_learning_rate", &Options::end_learning_rate, "the value at the end and after it")
      .key("total_iters",
           &Options::total_iters,
           at_least(0),
           "how long the schedule takes to reach its end");
  add_target_keys(keys);
}

void register_step_lr(Registry<Scheduler>& registry) {
  using Options = StepLR::Options;
  auto& keys = registry.add<StepLR>("StepLR", "Multiplied by gamma every step_size.");
  keys.key("initial_learning_rate", &Options::initial_learning_rate, "the first value")
      .required()
      .key("step_size", &Options::step_size, greater_than(0), "how long a value stays")
      .required()
      .key("gamma", &Options::gamma, "factor from one value to the next")
      .key("total_iters",
           &Options::total_iters,
           at_least(0),
           "how long it lasts in a sequence; absent: forever");
  add_target_keys(keys);
}

}  // namespace rondo
