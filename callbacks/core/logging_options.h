#pragma once

#include <string>

#include "core/time.h"

namespace rondo {

struct LoggingOptions {
  /// Between two log steps: updates, a fraction of the run, "2ep", "1e6tok", "10sec"; 0: only the
  /// last step of a run.
  Time log_steps = 1;
  std::string log_level =
      "info";  ///< least level that the console shows: "debug", "info", "warning" or "error"
};

}  // namespace rondo
