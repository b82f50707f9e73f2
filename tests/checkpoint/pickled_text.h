#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/internal/bytes.h"

namespace rondo::test {

/// The operation of a pickle that pushes a text.
inline std::string pickled(const std::string& text) {
  std::string bytes = "X";
  detail::put(bytes, static_cast<uint32_t>(text.size()));
  return bytes + text;
}

}  // namespace rondo::test
