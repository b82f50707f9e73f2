#pragma once

#include "callbacks/callback.h"
#include "callbacks/checkpoint_options.h"

namespace rondo {

/// What `Trainer::predict` does.
Outputs predict(Trainer& trainer, const DataLoader& loader, const LoadFrom& from);

}  // namespace rondo
