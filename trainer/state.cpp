#include "trainer/state.h"

#include "callbacks/core/run_plan.h"

namespace rondo {

bool State::falls_due(const Time& interval, const Timestamp& before, const Timestamp& after) const {
  const RunLength& run = plan->length();
  const bool is_fraction = interval.unit() == TimeUnit::Fraction && run.total;
  const TimeUnit unit = is_fraction ? run.total->unit() : interval.unit();
  return unit == TimeUnit::Second ? crosses(interval, earlier, previous, run)
                                  : crosses(interval, before, after, run);
}

}  // namespace rondo
