#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "checkpoint/internal/malformed.h"

namespace rondo::detail {

/// Appends an unsigned number, lowest byte first.
template <class T>
void put(std::string& to, T value) {
  static_assert(std::is_unsigned_v<T>);
  for (size_t i = 0; i < sizeof(T); ++i) {
    to.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
  }
}

/// Walks through bytes and never past their end: each read throws Malformed instead.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  size_t position() const { return position_; }

  size_t left() const { return bytes_.size() - position_; }

  std::string_view take(size_t size) {
    if (size > left()) {
      throw Malformed("ends too early");
    }
    position_ += size;
    return bytes_.substr(position_ - size, size);
  }

  /// An unsigned number, lowest byte first.
  template <class T>
  T number() {
    static_assert(std::is_unsigned_v<T>);
    const std::string_view bytes = take(sizeof(T));
    T value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      value =
          static_cast<T>(value | static_cast<T>(static_cast<unsigned char>(bytes[i])) << (8 * i));
    }
    return value;
  }

  /// The bytes up to the next newline, which is skipped.
  std::string_view line() {
    const size_t end = bytes_.find('\n', position_);
    if (end == std::string_view::npos) {
      throw Malformed("ends within a line");
    }
    const std::string_view text = take(end - position_);
    take(1);
    return text;
  }

 private:
  std::string_view bytes_;
  size_t position_ = 0;
};

}  // namespace rondo::detail
