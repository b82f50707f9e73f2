#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "data/data_loader.h"
#include "trainer/run_config.h"

namespace rondo {

class Trainer;

/// Bytes that a process is predicted to take with micro-batches of so many samples.
using PredictBytes = std::function<int64_t(int64_t samples)>;

/// The largest of `batch`, its half and so on down to 1 that is predicted to fit. Tries an eighth
/// first, and a larger one only where the growth so far leaves room for it.
/// \return nothing when one sample does not fit
std::optional<int64_t> largest_that_fits(int64_t batch, int64_t limit, const PredictBytes& predict);

/// What the process of a run is predicted to take with such micro-batches: as `rondo plan` predicts
/// it, with a copy of the state for an update that is undone.
/// \throws Error  when its steps cannot be planned
int64_t predicted_bytes(RunConfig run, int64_t samples);

/// The same for a run.
/// \throws Error  as above
std::optional<int64_t> largest_that_fits(const RunConfig& run, int64_t limit);

/// The size of micro-batches that a fit begins with to stay within `limit` bytes.
/// \return nothing, with a warning, when its steps cannot be planned
/// \throws UsageError  when one sample does not fit
std::optional<int64_t> predicted_micro_batch(const Trainer& trainer,
                                             const DataLoader& train,
                                             const Loaders& val,
                                             int64_t limit);

}  // namespace rondo
