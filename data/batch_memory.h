#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>

#include <memory>

namespace rondo {

/// Where a loader's batches have their large tensors, those of 128 KiB and more: outside of the
/// heap, and the memory of used batches is that of the next ones. In the heap batches of several
/// sizes leave holes, and the launcher has the heap keep them.
///
/// There is never more than batches had at once. What is not in use goes with the object; tensors
/// may outlive it. Tensors may be dropped on any thread.
class BatchMemory {
 public:
  /// While it lives, `batch_tensor` takes memory from `memory` on this thread.
  class Scope {
   public:
    explicit Scope(BatchMemory& memory);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    BatchMemory* before_;
  };

  BatchMemory();
  BatchMemory(const BatchMemory&) = delete;
  BatchMemory& operator=(const BatchMemory&) = delete;
  ~BatchMemory();

 private:
  friend at::Tensor batch_tensor(c10::IntArrayRef sizes, c10::ScalarType dtype);

  class Blocks;

  const std::shared_ptr<Blocks> blocks_;
};

/// An uninitialised tensor on the CPU for a batch, in the memory of the loader that asks for the
/// batch on this thread: for a `Dataset::get_batch` of one's own. Without a loader as at::empty.
at::Tensor batch_tensor(c10::IntArrayRef sizes, c10::ScalarType dtype);

}  // namespace rondo
