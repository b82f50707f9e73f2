#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "checkpoint/internal/deferred_copy.h"
#include "core/memory_block.h"

namespace rondo::detail {

/// One block of memory for copies of many tensors, used again from copy to copy: it only grows.
/// What is copied does not pass through the caches, and large tensors are copied behind their
/// owner's back: all shorten the time that a training loop waits for a copy of its state.
class SnapshotMemory {
 public:
  /// Replaces each tensor by the bytes of its copy, as it is now: uint8 [nbytes] on the CPU, in
  /// this memory, which it keeps alive. What was copied before is overwritten. Whole after
  /// `finish`, which must follow soon: until then whoever writes to one of the large tensors waits.
  void begin(std::vector<at::Tensor>& tensors);

  /// Once for each `begin`, on any thread. \return the seconds in which somebody waited
  double finish();

  /// Lets go of the tensors: they may be resized again. After `finish`, or instead of it.
  void release() { deferred_.reset(); }

 private:
  std::unique_ptr<MemoryBlock> block_;
  std::unique_ptr<DeferredCopy> deferred_;
};

}  // namespace rondo::detail
