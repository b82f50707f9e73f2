#pragma once

#include "callbacks/asks_for_instruments.h"
#include "callbacks/callback.h"
#include "callbacks/not_in_dry_runs.h"

namespace rondo {

/// Compares one replay of each recorded step with the step as it was recorded, operator by operator
/// and from the same state, and writes at the end of a fit `<artifact_dir>/numerics/<step>.txt` and
/// `.json`: the first operator that differs, and the error of each. With `backend.exact` none does;
/// without it the tables show what the faster kernels cost. The run itself goes on with the replay.
/// Keeps every value of a step in memory, twice, while it compares.
class VerifyNumerics final : public Callback, public AsksForInstruments, public NotInDryRuns {
 public:
  Instruments instruments() const override;

  void on_fit_end(Trainer& trainer, Loop&) override;
};

}  // namespace rondo
