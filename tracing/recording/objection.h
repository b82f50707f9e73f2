#pragma once

#include <string>

namespace rondo {

/// Why something cannot be recorded, and what to do instead. Thrown inside of the recorder, which
/// knows where the step stands and makes a `Refusal` of it.
struct Objection {
  std::string what;
  std::string advice;
};

}  // namespace rondo
