#pragma once

#include <cstdint>

#include "callbacks/callback.h"
#include "callbacks/core/loop.h"
#include "data/data_loader.h"

namespace rondo {

/// A loader for trying the steps of a run: where its passes are long and end with a group or a
/// batch that is cut short, with passes of two whole groups and that end, over the same data set.
/// Else the run's own: such an end has no memory of its own unless it is replayed, which takes
/// three passes. Also over an iterable data set, whose end nobody knows.
DataLoader with_short_passes(const DataLoader& loader, const LoopOptions& loop);

/// Batches of a validation that has all kinds that a longer one has.
inline constexpr int64_t kShortValidation = 5;

/// The loaders of a run's validations with passes of at most so many batches, the last of which is
/// the end of the run's pass where its validations come there. One over an iterable data set stays
/// as it is.
Loaders with_short_validations(const Loaders& loaders, const LoopOptions& loop);

}  // namespace rondo
