#include "checkpoint/internal/malformed.h"

#include <fmt/format.h>

#include "core/error.h"

namespace rondo::detail {

void fail_at(const FilePlace& place, std::string_view what) {
  const std::string record = place.record.empty() ? "" : "record " + in_quotes(place.record) + ", ";
  throw CheckpointError(fmt::format("{}: {}byte {}: {}", place.path, record, place.offset, what));
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kLongest = 80;
  std::string shown = "\"";
  for (const char c : text.substr(0, kLongest)) {
    shown += c < ' ' || c > '~' ? '?' : c;
  }
  return shown + (text.size() > kLongest ? "…\"" : "\"");
}

}  // namespace rondo::detail
