#pragma once

#include "core/log.h"
#include "tracing/exported_step.h"
#include "trainer/run_config.h"

namespace rondo {

/// The training step of a run, with the state from which the run would resume: `fit.ckpt_path`,
/// else the newest readable checkpoint in its directory, else `checkpoint.load`. The run may be
/// over already. To record the step, it runs a few steps on the run's data and undoes them; the
/// run's checkpoints stay as they are. The export leaves out closures (metrics, callbacks' host
/// work after a step) and turns schedules into tables.
/// \throws UsageError         when the run has no fit
/// \throws NotSupportedError  naming what cannot be exported: host calls other than schedulers,
///                            endless schedules in a run of unknown length, groups whose batches
///                            differ, strided batches, arguments that cannot be serialised
StepFile export_step(const RunConfig& run);

/// What the run would load from its own directory, for a Trainer in another directory.
LoadFrom start_of(const RunConfig& run, const TextLog& log);

}  // namespace rondo
