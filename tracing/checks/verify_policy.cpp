#include "tracing/checks/verify_policy.h"

#include <charconv>

#include "core/error.h"

namespace rondo {

VerifyPolicy parse_verify(const std::string& text) {
  if (text == "growing") {
    return {true, 0, true};
  }
  if (text == "first") {
    return {true, 0};
  }
  if (text == "off") {
    return {false, 0};
  }
  int64_t every = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, every);
  if (error != std::errc() || stop != end || every < 1) {
    throw UsageError(
        "backend.verify: expected \"growing\", \"first\", \"off\" or an integer >= 1, got \"" +
        text + '"');
  }
  return {true, every};
}

}  // namespace rondo
