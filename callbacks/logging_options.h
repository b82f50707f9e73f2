#pragma once

#include <cstdint>
#include <string>

namespace rondo {

struct LoggingOptions {
  int64_t log_steps = 1;           ///< updates between two log steps; 0: only the last of a run
  std::string log_level = "info";  ///< "debug", "info", "warning" or "error": of the console
};

}  // namespace rondo
