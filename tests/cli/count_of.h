#pragma once

#include <cstdint>
#include <string>

namespace rondo::test {

/// How often `part` stands in a text.
inline int64_t count_of(const std::string& text, const std::string& part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace rondo::test
