#pragma once

#include <cstdint>

namespace rondo::test {

/// The most that this thread holds of the heap at a time while it lives, beyond what it held
/// before. Not under sanitizers, which have a heap of their own.
class HeapMeter {
 public:
  HeapMeter();
  HeapMeter(const HeapMeter&) = delete;
  HeapMeter& operator=(const HeapMeter&) = delete;
  ~HeapMeter();

  /// Bytes; 0 where nothing is measured.
  int64_t peak() const;
};

}  // namespace rondo::test
