#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends/step_report.h"
#include "callbacks/core/checkpoint_options.h"
#include "callbacks/core/loop.h"
#include "data/data_loader.h"
#include "trainer/run_config.h"
#include "trainer/trainer_options.h"

namespace rondo {

/// Makes a run of `updates` updates, whatever its file says of its length.
void set_length(LoopOptions& loop, int64_t updates);

/// What a short training showed.
struct DryRun {
  std::vector<StepReport> steps;  ///< that were planned
  int64_t most_before = 0;        ///< the most bytes that were resident until it began
  int64_t before = 0;             ///< bytes that were resident then, with the data set
  int64_t grown_by = 0;           ///< bytes from there to the most that ever was
  DataLoader train;               ///< that it was trained on
  Loaders val;                    ///< that it was validated on
};

/// Trains `updates` updates of a run from its beginning, and up to five times as many more until
/// each step was replayed that is planned, in a directory that is gone afterwards: no checkpoint is
/// read or written, nothing is validated, no logger told, nor a callback that is NotInDryRuns.
/// Whoever asks the run to stop is not heard. Where the number of threads is left open, it is that
/// of the run's last fit, or 1.
/// A loss that is not finite ends it early once all of them were: its numbers are nobody's.
/// \throws UsageError          when the run has no [trainer.fit], or no plan executor traces its
///                             steps
/// \throws NotSupportedError   when no step was planned
/// \throws NonFiniteLossError  when a loss went bad before
/// \throws Error               when the training ended before
DryRun dry_run(RunConfig run, int64_t updates);

/// As `dry_run`, until every step of the run was replayed twice, also those of its validations and
/// those that only the end of a pass has: long passes are cut to it (`with_short_passes`). Not
/// among them are a ValidationCallback, which is left out of a run that validates, and maybe the
/// end of an iterable data set, which is not known.
DryRun dry_run_of_all_steps(RunConfig run);

/// What it takes to time the updates of a run.
struct TimedFit {
  TrainerOptions options;
  DataLoader train;
  LoadFrom from;                   ///< what the run has begun with
  std::function<bool()> gives_up;  ///< asked before each batch
};

/// What became of it.
struct UpdateTime {
  std::optional<double>
      median_s;         ///< of an update once steps are replayed; nothing: none was timed
  std::string trouble;  ///< what ended the training early; "" when nothing did
};

/// Trains for about a quarter of a second in the same way, also beyond the run's end: fewer updates
/// of a small step tell nothing. Whatever goes wrong in it ends it, with the times that it has by
/// then.
UpdateTime time_updates(const TimedFit& fit);

}  // namespace rondo
