#pragma once

#include <c10/core/Device.h>

#include "backends/step.h"

namespace rondo {

/// The batch with every tensor on `device`; from pinned memory the copies may still be under way.
Batch stage_on(Batch host, c10::Device device);

/// Waits for what was started on `device`; nothing to do on the CPU.
void synchronize_device(c10::Device device);

/// The same tensors without their autograd history, as a replayed step gives them.
Outputs detached(const Outputs& outputs);
StepClosure detached(StepClosure closure);

}  // namespace rondo
