#include "optim/duration_counter.h"

#include <fmt/format.h>

#include "core/error.h"

namespace rondo {

Time DurationCounter::scaled(const std::string& option, const Time& duration) const {
  const Time found = duration * ratio_;
  if (found.is_zero() && !duration.is_zero()) {
    throw UsageError(
        fmt::format("{}: loop.scale_schedule_ratio = {} leaves nothing of {}; set a larger ratio",
                    option,
                    ratio_,
                    duration.to_string()));
  }
  return found;
}

double DurationCounter::count(const std::string& option,
                              const Time& duration,
                              int64_t least,
                              bool is_scaled) {
  Time found = duration;
  try {
    found = counted(duration, run_);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", option, error.what()));
  }
  if (is_scaled && duration.unit() != TimeUnit::Fraction) {
    found = scaled(option, found);
  }
  if (found.count() < least) {
    throw UsageError(fmt::format("{}: expected at least {}, got {} ({})",
                                 option,
                                 Time::in(found.unit(), least).to_string(),
                                 duration.to_string(),
                                 found.to_string()));
  }
  if (found.is_zero()) {
    return 0.0;  // in any unit
  }
  if (!first_) {
    first_ = First{option, found};
  }
  if (found.unit() != first_->counted.unit()) {
    throw UsageError(fmt::format(
        "{}: {} counts as {} in this run, {} as {}; one schedule counts one unit: write both in it",
        option,
        duration.to_string(),
        found.to_string(),
        first_->option,
        first_->counted.to_string()));
  }
  return found.value();
}

}  // namespace rondo
