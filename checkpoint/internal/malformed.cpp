#include "checkpoint/internal/malformed.h"

#include <fmt/format.h>

#include "core/error.h"

namespace rondo::detail {

namespace {

/// Length of the well-formed character at the start of `text` (Unicode 15, table 3-7); 0 when it is
/// not one.
size_t character_length(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  if (first < 0xC2 || first > 0xF4) {
    return 0;
  }
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (text.size() < length) {
    return 0;
  }
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) {
      return 0;
    }
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) > 0x9F;
  const bool too_large = first == 0xF4 && byte(1) > 0x8F;
  return overlong || surrogate || too_large ? 0 : length;
}

}  // namespace

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

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = character_length(text);
    if (length == 0) {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace rondo::detail
