#pragma once

#include <c10/core/Device.h>

#include "backends/step.h"

namespace rondo {

/// The batch with every tensor on `device`; from pinned memory the copies may still be under way.
Batch stage_on(Batch host, c10::Device device);

/// The same elements in the same memory, where the storages of its tensors begin with the first of
/// them: a recorded step knows a tensor by its offset, which differs from batch to batch where a
/// data set cuts them from a larger tensor. Leaves alone what has an autograd history, and what is
/// cut at places that its dtypes cannot count from.
Batch cut_loose(Batch batch);

/// Waits for what was started on `device`; nothing to do on the CPU.
void synchronize_device(c10::Device device);

/// The same tensors without their autograd history, as a replayed step gives them.
Outputs detached(const Outputs& outputs);
StepClosure detached(StepClosure closure);

}  // namespace rondo
