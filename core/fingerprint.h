#pragma once

#include <cstdint>

namespace rondo {

/// Folds numbers and addresses, in order, into one number that differs when one of them does. With
/// addresses it is not for files: they are those of this process.
class Fingerprint {
 public:
  void add(uint64_t bits) {
    // An odd factor and a shift lose nothing: two rows that differ in one place never meet.
    bits_ = (bits_ ^ bits) * 0x9E3779B97F4A7C15ULL;  // SplitMix64's
    bits_ ^= bits_ >> 32;
  }

  /// \param flag  in a bit that an aligned address leaves free
  void add(const void* address, bool flag = false) {
    add(reinterpret_cast<uintptr_t>(address) | static_cast<uintptr_t>(flag));
  }

  uint64_t value() const { return bits_; }

 private:
  uint64_t bits_ = 0;
};

}  // namespace rondo
