#include "core/memory_block.h"

#include <c10/core/DeviceGuard.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>

namespace rondo {

struct MemoryBlock::Allocation {
  c10::DataPtr memory;
  Extent extent;
};

namespace {

using Holder = std::shared_ptr<const void>;

void drop(void* holder) {
  delete static_cast<Holder*>(holder);
}

#ifdef MADV_HUGEPAGE

constexpr uintptr_t kLargePage = uintptr_t{2} << 20;

uintptr_t rounded_up(uintptr_t place) {
  return (place + kLargePage - 1) / kLargePage * kLargePage;
}

struct Mapping {
  void* begin = nullptr;
  size_t bytes = 0;
};

void unmap(void* context) {
  const std::unique_ptr<Mapping> mapping(static_cast<Mapping*>(context));
  ::munmap(mapping->begin, mapping->bytes);
}

/// Of whole large pages, when so many bytes are asked for: all but an end that is worth none.
size_t bytes_in_large_pages(size_t bytes) {
  return (bytes + kLargePage / 2) / kLargePage * kLargePage;
}

/// Of a block, before the end of its last page: some kernels read a little beyond a matrix, such as
/// OpenBLAS's ssymv for processors that it does not know.
constexpr size_t kReadBeyond = 64;

/// Null where there are none.
c10::DataPtr map_large_pages(size_t bytes) {
  auto mapping = std::make_unique<Mapping>();
  mapping->bytes = rounded_up(bytes + kReadBeyond);
  const size_t room = mapping->bytes + kLargePage;  // to begin where a large page may
  void* const begin =
      ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) {
    return {};
  }
  const auto place = reinterpret_cast<uintptr_t>(begin);
  const size_t before = rounded_up(place) - place;
  char* const data = static_cast<char*>(begin) + before;
  if (before > 0) {
    ::munmap(begin, before);
  }
  ::munmap(data + mapping->bytes, kLargePage - before);
  ::madvise(data, bytes_in_large_pages(bytes), MADV_HUGEPAGE);  // advice: its pages may stay small
  mapping->begin = data;
  return {data, mapping.release(), unmap, c10::kCPU};
}

#else

size_t bytes_in_large_pages(size_t) {
  return 0;
}

c10::DataPtr map_large_pages(size_t) {
  return {};
}

#endif

}  // namespace

MemoryBlock::MemoryBlock(int64_t bytes, c10::Device device) : bytes_(bytes) {
  size_t taken = static_cast<size_t>(bytes);
  c10::DataPtr memory;
  if (const size_t large = device.is_cpu() ? bytes_in_large_pages(taken) : 0; large > 0) {
    memory = map_large_pages(taken);
    taken = memory ? std::max(taken, large) : taken;
  }
  if (!memory) {
    const c10::OptionalDeviceGuard guard(device.is_cpu() ? c10::nullopt
                                                         : c10::make_optional(device));
    memory = c10::GetAllocator(device.type())->allocate(taken);
  }
  const auto* const begin = static_cast<const char*>(memory.get());
  allocation_ = std::make_shared<Allocation>(Allocation{std::move(memory), {begin, begin + taken}});
}

char* MemoryBlock::data() const {
  return static_cast<char*>(allocation_->memory.get());
}

MemoryBlock::Extent MemoryBlock::extent() const {
  return allocation_->extent;
}

c10::DataPtr MemoryBlock::part(int64_t offset) const {
  return {data() + offset, new Holder(allocation_), drop, allocation_->memory.device()};
}

MemoryBlock::Extent MemoryBlock::extent_around(const c10::DataPtr& memory) {
  if (memory.get_deleter() != drop) {
    return {};
  }
  const auto& holder = *static_cast<const Holder*>(memory.get_context());
  return static_cast<const Allocation*>(holder.get())->extent;
}

}  // namespace rondo
