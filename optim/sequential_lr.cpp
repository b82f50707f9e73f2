#include "optim/sequential_lr.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "core/registry.h"
#include "optim/internal/scheduler_options.h"
#include "optim/register.h"

namespace rondo {

namespace {

const SchedulerTarget kDefaultTarget;

/// A child says nothing of its target, or repeats the key of the sequence.
void check_target(const SchedulerTarget& child, const SchedulerTarget& sequence, size_t i) {
  if (!child.param_group_tags.empty()) {
    throw UsageError(fmt::format(
        "SequentialLR.schedulers[{}].param_group_tags: expected none, got [{}]; tags belong to the "
        "sequence",
        i,
        fmt::join(child.param_group_tags, ", ")));
  }
  if (child.param_group_key != kDefaultTarget.param_group_key &&
      child.param_group_key != sequence.param_group_key) {
    throw UsageError(fmt::format(
        "SequentialLR.schedulers[{}].param_group_key: expected \"{}\" as the sequence has it, got "
        "\"{}\"",
        i,
        sequence.param_group_key,
        child.param_group_key));
  }
}

/// "100ba, 300ba"
std::string in_unit(TimeUnit unit, const std::vector<double>& amounts) {
  std::vector<std::string> texts;
  for (const double amount : amounts) {
    texts.push_back(Time::in(unit, static_cast<int64_t>(amount)).to_string());
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

SequentialLR::SequentialLR(const Options& options)
    : Scheduler(detail::target_of(options)), given_milestones_(options.milestones), starts_({0.0}) {
  if (options.schedulers.empty()) {
    throw UsageError("SequentialLR.schedulers: expected at least one, got none");
  }
  for (const Factory<Scheduler>& factory : options.schedulers) {
    schedulers_.push_back(factory.make());
    check_target(schedulers_.back()->target(), target(), schedulers_.size() - 1);
  }
}

void SequentialLR::count_durations(DurationCounter& counter) {
  starts_ = {0.0};
  for (size_t i = 0; i < schedulers_.size(); ++i) {
    schedulers_[i]->count_durations(counter);
    if (i + 1 == schedulers_.size()) {
      break;
    }
    const double length = schedulers_[i]->length();
    if (length == kEndless) {
      throw UsageError(fmt::format(
          "SequentialLR.schedulers[{}]: it never ends, so what follows would never begin; "
          "give it total_iters",
          i));
    }
    starts_.push_back(starts_.back() + length);
  }
  const std::vector<double> milestones(starts_.begin() + 1, starts_.end());
  std::vector<double> given;
  for (const Time& milestone : given_milestones_) {
    given.push_back(counter.count("SequentialLR.milestones", milestone, 0));
  }
  if (!given.empty() && given != milestones) {
    throw UsageError(
        fmt::format("SequentialLR.milestones: expected [{}], the sums of total_iters, or "
                    "none; got [{}]",
                    in_unit(counter.unit(), milestones),
                    in_unit(counter.unit(), given)));
  }
}

double SequentialLR::value(double done) const {
  const auto after = std::upper_bound(starts_.begin() + 1, starts_.end(), done);
  const auto i = after - starts_.begin() - 1;
  return schedulers_[i]->value(done - starts_[i]);
}

double SequentialLR::length() const {
  return starts_.back() + schedulers_.back()->length();
}

void register_sequential_lr(Registry<Scheduler>& registry) {
  using Options = SequentialLR::Options;
  auto& keys = registry.add<SequentialLR>("SequentialLR", "Schedules one after another.");
  keys.key_of("schedulers",
              &Options::schedulers,
              ComponentListOption<Scheduler>(registry),
              "the schedules, in order; each but the last needs total_iters")
      .required()
      .key("milestones", &Options::milestones, at_least(0), "when each begins; absent: computed");
  detail::add_target_keys(keys);
}

}  // namespace rondo
