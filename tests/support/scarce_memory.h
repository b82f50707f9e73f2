#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <torch/version.h>

#include <cstddef>
#include <limits>

namespace rondo::test {

/// Stands for LibTorch's allocator of the host as long as it lives, and fails as that one does when
/// it is asked for too much at once. One at a time.
class ScarceMemory {
 public:
  ScarceMemory() { c10::SetCPUAllocator(&allocator_); }

  ScarceMemory(const ScarceMemory&) = delete;
  ScarceMemory& operator=(const ScarceMemory&) = delete;

  ~ScarceMemory() { c10::SetCPUAllocator(allocator_.real); }

  /// From here on there is no block of so many bytes. \param bytes  0: none at all
  void end_at(size_t bytes) { allocator_.end = bytes; }

  /// From here on there is memory again.
  void give_back() { allocator_.end = std::numeric_limits<size_t>::max(); }

 private:
  struct Failing final : c10::Allocator {
    c10::DataPtr take(size_t bytes) const {
      TORCH_CHECK(
          bytes < end, "DefaultCPUAllocator: can't allocate memory: you tried to allocate ", bytes);
      return real->allocate(bytes);
    }

#if TORCH_VERSION_MAJOR >= 2
    c10::DataPtr allocate(size_t bytes) override {
      return take(bytes);
    }

    void copy_data(void* dest, const void* src, std::size_t count) const override {
      default_copy_data(dest, src, count);
    }
#else
    c10::DataPtr allocate(size_t bytes) const override {
      return take(bytes);
    }
#endif

    c10::DeleterFnPtr raw_deleter() const override {
      return real->raw_deleter();
    }

    c10::Allocator* real = c10::GetCPUAllocator();
    size_t end = std::numeric_limits<size_t>::max();
  };

  Failing allocator_;
};

}  // namespace rondo::test
