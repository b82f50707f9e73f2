#include "trainer/state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "callbacks/core/run_plan.h"
#include "core/error.h"
#include "core/glob.h"

namespace rondo {

Optimizer& State::optimizer_named(std::string_view name) const {
  std::vector<std::string> known;
  for (const auto& one : optimizers) {
    if (one->name() == name || (name.empty() && optimizers.size() == 1)) {
      return *one;
    }
    known.push_back(one->name());
  }
  if (name.empty() && !known.empty()) {
    throw UsageError(
        fmt::format("which optimizer? The run has several: {}", fmt::join(known, ", ")));
  }
  throw UsageError(
      fmt::format("the run has no optimizer \"{}\"{}", name, suggestion(std::string(name), known)));
}

bool State::falls_due(const Time& interval, const Timestamp& before, const Timestamp& after) const {
  const RunLength& run = plan->length();
  const bool is_fraction = interval.unit() == TimeUnit::Fraction && run.total;
  const TimeUnit unit = is_fraction ? run.total->unit() : interval.unit();
  return unit == TimeUnit::Second ? crosses(interval, earlier, previous, run)
                                  : crosses(interval, before, after, run);
}

}  // namespace rondo
