#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace rondo::detail {

/// One block of memory for copies of many tensors, used again from copy to copy: it only grows. Its
/// pages are large where the system has such, and what is copied does not pass through the caches:
/// both shorten the time that a training loop waits for a copy of its state.
class SnapshotMemory {
 public:
  /// Replaces each tensor by a copy on the CPU, contiguous, which lies in this memory and keeps it
  /// alive. What was copied before is overwritten.
  void copy(std::vector<at::Tensor>& tensors);

 private:
  at::Tensor block_;  // uint8 [bytes]
};

}  // namespace rondo::detail
