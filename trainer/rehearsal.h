#pragma once

#include <cstdint>
#include <vector>

#include "backends/step_report.h"
#include "loops/loop.h"
#include "trainer/run_config.h"

namespace rondo {

/// Makes a run of `updates` updates, whatever its file says of its length.
void set_length(LoopOptions& loop, int64_t updates);

/// What a short training showed.
struct Rehearsal {
  std::vector<StepReport> steps;
  int64_t grown_by = 0;  ///< bytes from what was resident before to the most that ever was
};

/// After so many updates every step is planned: both captures, a third where the first one made
/// state, and a replay.
constexpr int64_t kUpdatesToPlan = 4;

/// Trains a few updates of a run from its beginning, in a directory that is gone afterwards: no
/// checkpoint is read or written, nothing is validated, no logger told, nor a callback that is
/// NotRehearsed. Whoever asks the run to stop is not heard. Where the number of threads is left
/// open, it is that of the run's last fit, or 1.
/// \throws UsageError         when the run has no [trainer.fit], or no plan executor traces its
/// steps \throws NotSupportedError  when no step was planned \throws Error              when the
/// training ended before
Rehearsal rehearse(RunConfig run, int64_t updates);

/// Trains for about a second in the same way. \return the median time of an update, once steps are
/// replayed
double seconds_of_update(TrainerOptions options, const DataLoader& train);

}  // namespace rondo
