#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

namespace rondo {

/// One allocation whose parts are the memory of tensors. It lives as long as the object or one of
/// its parts.
///
/// On the CPU its pages have 2 MiB where Linux gives such to who asks: one entry of the processor's
/// table of pages covers what takes 512 of the usual ones. Less than half a large page is not worth
/// it, at the end of a block as well. Source: madvise(2), MADV_HUGEPAGE.
class MemoryBlock {
 public:
  struct Extent {
    const char* begin = nullptr;
    const char* end = nullptr;
  };

  /// Uninitialised, beginning on a cache line.
  /// \throws c10::Error  when there is not so much memory
  explicit MemoryBlock(int64_t bytes, c10::Device device = c10::kCPU);

  char* data() const;

  int64_t bytes() const { return bytes_; }

  /// The block with what its last large page has behind it, which is nobody's.
  Extent extent() const;

  /// For a storage, which holds the block. \param offset  from the block's start, in bytes
  c10::DataPtr part(int64_t offset) const;

  /// Of the block that `memory` is a part of; nulls when it is none.
  static Extent extent_around(const c10::DataPtr& memory);

 private:
  struct Allocation;

  std::shared_ptr<const Allocation> allocation_;
  int64_t bytes_;
};

}  // namespace rondo
