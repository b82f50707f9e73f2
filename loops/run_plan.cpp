#include "loops/run_plan.h"

#include <algorithm>

namespace rondo {

namespace {

/// The limits of a run as totals.
std::vector<Time> limits_of(const LoopOptions& options, const Timestamp& start) {
  std::vector<Time> limits;
  if (options.max_steps) {
    limits.emplace_back(*options.max_steps);
  }
  if (options.num_steps) {
    limits.push_back(Time(start.update) + Time(*options.num_steps));
  }
  if (options.num_epochs) {
    const Time epochs = Time::in(TimeUnit::Epoch, *options.num_epochs);
    limits.push_back(options.steps_per_epoch
                         ? Time(in_updates(epochs, {std::nullopt, options.steps_per_epoch}))
                         : epochs);
  }
  if (options.max_duration) {
    limits.push_back(*options.max_duration);
  }
  if (limits.empty()) {
    limits.push_back(Time::in(TimeUnit::Epoch, 1));
  }
  return limits;
}

bool is_countable(const Time& limit, const RunLength& known) {
  return limit.unit() == TimeUnit::Update ||
         (limit.unit() == TimeUnit::Epoch && known.updates_per_epoch.has_value());
}

std::optional<int64_t> total_updates(const std::vector<Time>& limits, const RunLength& known) {
  std::optional<int64_t> total;
  for (const Time& limit : limits) {
    if (is_countable(limit, known)) {
      const int64_t updates = in_updates(limit, known);
      total = total ? std::min(*total, updates) : updates;
    }
  }
  return total;
}

}  // namespace

RunPlan::RunPlan(const LoopOptions& options,
                 const Timestamp& start,
                 std::optional<int64_t> updates_per_epoch)
    : limits_(limits_of(options, start)), eval_frequency_(options.eval_frequency) {
  length_.updates_per_epoch = updates_per_epoch;
  length_.total_updates = total_updates(limits_, length_);
  if (validates() && eval_frequency_.unit() == TimeUnit::Fraction && !validates_only_at_end()) {
    in_updates(eval_frequency_, length_);  // throws when the run's length is not known
  }
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
    // Epochs are counted in updates where that is possible: finer than whole passes.
    const bool countable = is_countable(limit, length_);
    const int64_t done = countable ? time.update : time.get(limit.unit());
    const int64_t total = countable ? in_updates(limit, length_) : limit.count();
    share = std::max(share, static_cast<double>(done) / static_cast<double>(total));
  }
  return std::min(share, 1.0);
}

bool RunPlan::ends_stretch(const Timestamp& before, const Timestamp& after) const {
  if (is_over(after)) {
    return true;
  }
  return !validates_only_at_end() && crosses(eval_frequency_, before, after, length_);
}

int64_t RunPlan::loop_idx(const Timestamp& time) const {
  const bool is_fraction = eval_frequency_.unit() == TimeUnit::Fraction;
  if (!validates() || validates_only_at_end()) {
    return 0;
  }
  return is_fraction ? time.update / in_updates(eval_frequency_, length_)
                     : time.get(eval_frequency_.unit()) / eval_frequency_.count();
}

std::optional<int64_t> RunPlan::updates_of_stretch(const Timestamp& time) const {
  if (!length_.total_updates) {
    return std::nullopt;
  }
  const int64_t left = std::max<int64_t>(*length_.total_updates - time.update, 0);
  const bool countable =
      eval_frequency_.unit() == TimeUnit::Update || eval_frequency_.unit() == TimeUnit::Fraction ||
      (eval_frequency_.unit() == TimeUnit::Epoch && length_.updates_per_epoch.has_value());
  if (!validates()) {
    return left;
  }
  if (!countable) {
    return std::nullopt;
  }
  const int64_t period = in_updates(eval_frequency_, length_);
  return std::min(left, period - time.update % period);
}

}  // namespace rondo
