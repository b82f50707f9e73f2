#include "core/terminal.h"

#include <sys/ioctl.h>

namespace rondo {

std::optional<int> terminal_columns(int fd) {
  winsize size = {};
  const bool is_known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? std::optional<int>(size.ws_col) : std::nullopt;
}

}  // namespace rondo
