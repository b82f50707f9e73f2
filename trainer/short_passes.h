#pragma once

#include <cstdint>

#include "data/data_loader.h"

namespace rondo {

/// A loader whose passes are short, with all steps that those of `loader` have: at most two whole
/// groups of batches, and what is left behind the last one of a pass, cut-short group and batch.
/// A pass that ends with a whole group, that is no longer, or over an iterable data set is left as
/// it is. Shares the data set.
/// \param group_size  batches of an update, >= 1
DataLoader with_short_passes(const DataLoader& loader, int64_t group_size);

}  // namespace rondo
