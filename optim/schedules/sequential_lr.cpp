#include "optim/schedules/sequential_lr.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "core/registry.h"
#include "optim/internal/schedule_parts.h"
#include "optim/register.h"
#include "optim/schedules/target_keys.h"

namespace rondo {

namespace {

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
    : Scheduler(options.target),
      schedulers_(detail::make_parts("SequentialLR", options.schedulers, options.target)),
      given_milestones_(options.milestones),
      starts_({0.0}) {}

double SequentialLR::length_of(size_t part) const {
  const double length = schedulers_[part]->length();
  if (length != kEndless) {
    return length;
  }
  if (part < given_milestones_.size()) {
    return given_milestones_[part] - starts_[part];
  }
  throw UsageError(
      fmt::format("SequentialLR.schedulers[{}]: it never ends, so what follows would never begin; "
                  "give it total_iters, or the sequence milestones",
                  part));
}

void SequentialLR::count_durations(DurationCounter& counter) {
  for (const auto& scheduler : schedulers_) {
    scheduler->count(counter);
  }
  for (Duration& milestone : given_milestones_) {
    milestone.count(counter, "SequentialLR.milestones", 0);
  }
  starts_ = {0.0};
  for (size_t i = 0; i + 1 < schedulers_.size(); ++i) {
    starts_.push_back(starts_.back() + length_of(i));
  }
  if (!given_milestones_.empty()) {
    check_milestones(counter);
  }
}

void SequentialLR::check_milestones(const DurationCounter& counter) const {
  const std::vector<double> sums(starts_.begin() + 1, starts_.end());
  const std::vector<double> given(given_milestones_.begin(), given_milestones_.end());
  // Each duration that is scaled is rounded down.
  const double slack = counter.is_scaled() ? static_cast<double>(schedulers_.size()) : 0.0;
  const bool fits =
      given.size() == sums.size() && std::is_sorted(sums.begin(), sums.end()) &&
      std::equal(given.begin(), given.end(), sums.begin(), [slack](double a, double b) {
        return std::abs(a - b) <= slack;
      });
  if (!fits) {
    throw UsageError(
        fmt::format("SequentialLR.milestones: expected [{}], the sums of total_iters, "
                    "or none; got [{}]",
                    in_unit(counter.unit(), sums),
                    in_unit(counter.unit(), given)));
  }
}

double SequentialLR::value(double done) const {
  const auto after = std::upper_bound(starts_.begin() + 1, starts_.end(), done);
  const auto i = static_cast<size_t>(after - starts_.begin() - 1);
  return schedulers_[i]->at(done - starts_[i]);
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
              "the schedules, in order; each but the last needs total_iters or a milestone")
      .required()
      .key("milestones", &Options::milestones, at_least(0), "when each begins; absent: computed");
  add_target_keys(keys);
}

}  // namespace rondo
