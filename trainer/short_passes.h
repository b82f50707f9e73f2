#pragma once

#include "data/data_loader.h"
#include "loops/loop.h"

namespace rondo {

/// A loader for trying the steps of a run: where its passes are long and end with a group or a
/// batch that is cut short, with passes of two whole groups and that end, over the same data set.
/// Else the run's own: such an end has no memory of its own unless it is replayed, which takes
/// three passes. Also over an iterable data set, whose end nobody knows.
DataLoader with_short_passes(const DataLoader& loader, const LoopOptions& loop);

}  // namespace rondo
