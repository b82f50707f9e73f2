#include "core/terminal.h"

#include <sys/ioctl.h>

#include <algorithm>

namespace rondo {

namespace {

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string safe;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    // U+0080 to U+009F do what an escape and a letter do.
    const bool is_c1 = byte == 0xC2 && next >= 0x80 && next < 0xA0;
    if (byte < 0x20 || byte == 0x7F || is_c1) {
      safe += '?';
      i += is_c1 ? 1 : 0;
    } else {
      safe += text[i];
    }
  }
  return safe;
}

size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), &begins_character));
}

std::string first_characters(const std::string& text, size_t count) {
  size_t end = 0;
  for (size_t seen = 0; end < text.size(); ++end) {
    if (begins_character(text[end]) && seen++ == count) {
      break;
    }
  }
  return text.substr(0, end);
}

std::optional<int> terminal_columns(int fd) {
  winsize size = {};
  const bool is_known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? std::optional<int>(size.ws_col) : std::nullopt;
}

}  // namespace rondo
