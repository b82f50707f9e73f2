#pragma once

#include "core/options.h"
#include "trainer/trainer_options.h"

namespace rondo {

// The keys of the core callbacks' tables in [trainer.init], a file each. Those that name other
// components have files of their own: distributed_keys.h, sparsity_keys.h.

KeyTable<BackendOptions> backend_keys();
KeyTable<PrecisionOptions> precision_keys();
KeyTable<LoopOptions> loop_keys();
KeyTable<CheckpointOptions> checkpoint_keys();

}  // namespace rondo
