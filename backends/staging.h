#pragma once

#include <c10/core/Device.h>

#include "backends/step.h"

namespace rondo {

/// The batch with every tensor on `device`; from pinned memory the copies may still be under way.
Batch stage_on(Batch host, c10::Device device);

/// The same elements in the same memory, in storages that hold nothing else. Where a data set cuts
/// batches from a larger tensor, a recorded step would know them by an offset that differs from
/// batch to batch, and a verified one would copy and restore the whole tensor. What a step body
/// does with `storage_offset()` or `storage()` sees the batch alone, and its storage cannot grow.
/// A tensor with an autograd history stays as it is. The memory must not move while the batch
/// lives.
Batch cut_loose(Batch batch);

/// Waits for what was started on `device`; nothing to do on the CPU.
void synchronize_device(c10::Device device);

/// The same tensors without their autograd history, as a replayed step gives them.
Outputs detached(const Outputs& outputs);
StepClosure detached(StepClosure closure);

}  // namespace rondo
