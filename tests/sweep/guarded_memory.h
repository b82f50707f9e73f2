#pragma once

#include <cstddef>
#include <cstdint>

namespace rondo::test {

/// Against which page, that nobody may touch, memory lies.
enum class Side { EndsAtPage, BeginsAfterPage };

/// Memory between two pages that nobody may touch: a write outside ends the process. Where its
/// alignment leaves bytes between it and the page, and on its other side, lies a pattern.
class GuardedMemory {
 public:
  GuardedMemory(int64_t bytes, Side side);
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory();

  /// On a cache line, as an arena's memory is.
  char* data() const { return data_; }

  int64_t bytes() const { return static_cast<int64_t>(bytes_); }

  /// Whether the bytes around it still hold the pattern.
  bool is_clean() const;

  /// From now on a write into it ends the process, too.
  void protect();

 private:
  char* begin() const;
  char* end() const;

  size_t page_;
  size_t pages_;  // without the two that nobody may touch
  size_t bytes_;
  char* mapped_;
  char* data_;
};

}  // namespace rondo::test
