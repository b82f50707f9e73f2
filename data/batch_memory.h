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
/// It never has more memory than batches took at once, give or take a sixteenth, and keeps that
/// much until it is destroyed. Tensors may outlive it, and may be dropped on any thread.
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
/// batch on this thread: for a `Dataset::get_batch` of one's own. A small one, and one that no
/// loader asks for, is as of at::empty.
/// \throws c10::Error  when there is not so much memory
at::Tensor batch_tensor(c10::IntArrayRef sizes, c10::ScalarType dtype);

}  // namespace rondo
