#pragma once

#include <unistd.h>

#include <array>
#include <string>

namespace rondo {

/// This machine's name; "" when the system has none.
inline std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace rondo
