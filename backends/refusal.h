#pragma once

#include <string>

namespace rondo {

/// Why the steps of one kind cannot be recorded and replayed.
struct Refusal {
  std::string what;    ///< which step, what was met and where
  std::string advice;  ///< what to write instead
};

/// What a CaptureError says: what was met, what to write instead, and how to go on without.
inline std::string error_text(const Refusal& refusal) {
  return refusal.what + "; " + refusal.advice +
         ". backend.on_refusal = \"eager\" runs such a step as it is written";
}

/// The same for a replay after the first: updates since the last good one may be wrong.
inline std::string later_error_text(const Refusal& refusal) {
  return refusal.what + "; " + refusal.advice +
         ". Updates since the last comparison may be wrong: resume from a checkpoint before it, "
         "with backend.mode = \"eager\" until the step is mended";
}

}  // namespace rondo
