#pragma once

#include <cstdint>
#include <string>

namespace rondo {

/// Which replays of a step are compared with an eager run of the same step.
struct VerifyPolicy {
  bool first = true;   ///< the first replay of a step that was captured
  int64_t every = 0;   ///< and every N-th one; 0: no other
  bool grows = false;  ///< and number 1, 2, 4, 8 …: the host may decide rarely

  /// \param replay  counts a step's replays from 0, anew when it is captured anew
  bool covers(int64_t replay) const {
    if (replay == 0) {
      return first;
    }
    return every > 0 ? replay % every == 0 : grows && (replay & (replay - 1)) == 0;
  }
};

/// Reads `BackendOptions::verify`: "growing", "first", "off" or an integer >= 1.
/// \throws UsageError  for anything else
VerifyPolicy parse_verify(const std::string& text);

}  // namespace rondo
