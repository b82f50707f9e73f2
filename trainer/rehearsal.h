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
  int64_t grown_by = 0;  ///< bytes from what was resident before, with the data set, to the
                         ///< most that ever was
};

/// Trains `updates` updates of a run from its beginning, and up to three times as many more until
/// each step was replayed that was recorded, in a directory that is gone afterwards: no checkpoint
/// is read or written, nothing is validated, no logger told.
/// \throws UsageError  when the run has no [trainer.fit], or does not trace its steps
Rehearsal rehearse(RunConfig run, int64_t updates);

/// Trains for about a second in the same way. \return the median time of an update, once steps are
/// replayed
double seconds_of_update(TrainerOptions options, const DataLoader& train);

}  // namespace rondo
