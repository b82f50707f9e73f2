#pragma once

#include "core/options.h"

namespace rondo {

/// The key `distributed` of TrainerOptions: a table that is absent where a run is one process.
OptionKey distributed_key();

}  // namespace rondo
