#include "core/terminal.h"

#include <sys/ioctl.h>

namespace rondo {

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

std::optional<int> terminal_columns(int fd) {
  winsize size = {};
  const bool is_known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? std::optional<int>(size.ws_col) : std::nullopt;
}

}  // namespace rondo
