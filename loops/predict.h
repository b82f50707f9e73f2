#pragma once

#include "callbacks/callback.h"
#include "callbacks/core/checkpoint_options.h"

namespace rondo {

/// What `Trainer::predict` does. \return nothing, and writes nothing, when a stop left batches out
Outputs predict(Trainer& trainer, const DataLoader& loader, const LoadFrom& from);

}  // namespace rondo
