#include "callbacks/core/run_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace rondo {

namespace {

Time scaled(const Time& limit, double ratio) {
  const Time found = limit * ratio;
  if (found.is_zero()) {
    throw UsageError(fmt::format(
        "loop.scale_schedule_ratio = {} leaves nothing of a run of {}", ratio, limit.to_string()));
  }
  return found;
}

/// The limits of a run as totals.
std::vector<Time> limits_of(const LoopOptions& options, const Timestamp& start) {
  std::vector<Time> limits;
  if (options.max_steps) {
    limits.push_back(scaled(*options.max_steps, options.scale_schedule_ratio));
  }
  if (options.num_steps) {
    limits.push_back(Time(start.update) + scaled(*options.num_steps, options.scale_schedule_ratio));
  }
  if (options.num_epochs) {
    const Time epochs = Time::in(TimeUnit::Epoch, *options.num_epochs);
    limits.push_back(scaled(counted(epochs, {std::nullopt, options.steps_per_epoch}),
                            options.scale_schedule_ratio));
  }
  if (options.max_duration) {
    limits.push_back(scaled(*options.max_duration, options.scale_schedule_ratio));
  }
  if (limits.empty()) {
    limits.push_back(scaled(Time::in(TimeUnit::Epoch, 1), options.scale_schedule_ratio));
  }
  return limits;
}

/// The nearest limit in updates; without one, that which is no number of passes.
std::optional<Time> total_of(const std::vector<Time>& limits) {
  std::optional<Time> total;
  for (const Time& limit : limits) {
    const bool is_in_updates = limit.unit() == TimeUnit::Update;
    if (limit.unit() != TimeUnit::Epoch &&
        (!total || (is_in_updates && (total->unit() != TimeUnit::Update || limit < *total)))) {
      total = limit;
    }
  }
  return total;
}

}  // namespace

RunPlan::RunPlan(const LoopOptions& options,
                 const Timestamp& start,
                 std::optional<int64_t> updates_per_epoch)
    : limits_(limits_of(options, start)),
      given_eval_frequency_(options.eval_frequency),
      eval_frequency_(options.eval_frequency) {
  length_.updates_per_epoch = updates_per_epoch;
  resolve();
}

void RunPlan::set_left_of_epoch(const Timestamp& start, int64_t updates) {
  if (length_.updates_per_epoch) {
    extra_updates_ = start.update + updates - (start.epoch + 1) * *length_.updates_per_epoch;
    resolve();
  }
}

void RunPlan::resolve() {
  std::vector<Time> limits;
  for (const Time& limit : limits_) {
    limits.push_back(in_updates(limit));
  }
  length_.total = total_of(limits);
  eval_frequency_ = given_eval_frequency_;
  if (validates() && eval_frequency_.unit() == TimeUnit::Fraction && !validates_only_at_end()) {
    eval_frequency_ = counted(eval_frequency_, length_);
  }
}

// A number of epochs of the run as its last update, where that is known.
Time RunPlan::in_updates(const Time& limit) const {
  const Time time = counted(limit, length_);
  const bool is_of_epochs = limit.unit() == TimeUnit::Epoch && time.unit() == TimeUnit::Update;
  return is_of_epochs ? time + Time(extra_updates_) : time;
}

bool RunPlan::validates_only_at_end() const {
  return eval_frequency_.unit() == TimeUnit::Fraction && eval_frequency_.value() == 1.0;
}

bool RunPlan::is_over(const Timestamp& time) const {
  return std::any_of(
      limits_.begin(), limits_.end(), [&](const Time& limit) { return time.reached(limit); });
}

double RunPlan::elapsed_share(const Timestamp& time) const {
  double share = 0.0;
  for (const Time& limit : limits_) {
    const Time total = in_updates(limit);
    share = std::max(share, time.amount(total.unit()) / total.value());
  }
  return std::min(share, 1.0);
}

bool RunPlan::ends_stage(const Timestamp& before, const Timestamp& after) const {
  if (is_over(after)) {
    return true;
  }
  return !validates_only_at_end() && crosses(eval_frequency_, before, after, length_);
}

int64_t RunPlan::loop_idx(const Timestamp& time) const {
  if (!validates() || validates_only_at_end()) {
    return 0;
  }
  return time.get(eval_frequency_.unit()) / eval_frequency_.count();
}

std::optional<int64_t> RunPlan::updates_of_stage(const Timestamp& time) const {
  if (!length_.total || length_.total->unit() != TimeUnit::Update) {
    return std::nullopt;
  }
  const int64_t left = std::max<int64_t>(length_.total->count() - time.update, 0);
  if (!validates() || validates_only_at_end()) {
    return left;
  }
  const Time period = counted(eval_frequency_, length_);
  if (period.unit() != TimeUnit::Update) {
    return std::nullopt;
  }
  return std::min(left, period.count() - time.update % period.count());
}

}  // namespace rondo
