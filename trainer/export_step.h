#pragma once

#include "core/log.h"
#include "tracing/exported_step.h"
#include "trainer/run_config.h"

namespace rondo {

/// The training step of a run, ready to go on where the run would: from its `fit.ckpt_path`, else
/// the newest checkpoint of its directory that can be read, else `checkpoint.load`. Whether the run
/// is over by then makes no difference. Runs a few steps on the run's own data to record it, and
/// undoes them; the run's checkpoints stay as they are.
/// Closures (metrics, callbacks' host work after a step) are left out; schedules become tables.
/// \throws UsageError         when the run has no fit
/// \throws NotSupportedError  naming what cannot be exported: host calls that are no schedulers,
///                            schedules without an end in a run whose length is not known, groups
///                            of batches that differ, strided batches, arguments without a written
///                            form
StepFile export_step(const RunConfig& run);

/// What the run would load in its own directory, for a Trainer that is in another one.
LoadFrom start_of(const RunConfig& run, const TextLog& log);

}  // namespace rondo
