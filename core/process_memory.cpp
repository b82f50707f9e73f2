#include "core/process_memory.h"

#include <fstream>
#include <sstream>
#include <string>

namespace rondo {

namespace {

/// Of a line such as "VmRSS:   123456 kB" of Linux's account of a process.
std::optional<int64_t> bytes_of(const std::string& label) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(label, 0) == 0) {
      std::istringstream rest(line.substr(label.size()));
      int64_t kilobytes = 0;
      return rest >> kilobytes ? std::optional(kilobytes * 1024) : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> resident_bytes() {
  return bytes_of("VmRSS:");
}

std::optional<int64_t> peak_resident_bytes() {
  return bytes_of("VmHWM:");
}

}  // namespace rondo
