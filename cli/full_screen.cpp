#include "cli/full_screen.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "cli/signal_handlers.h"
#include "core/no_sigpipe.h"

namespace rondo {

namespace {

constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l";
constexpr const char* kLeave = "\x1b[?25h\x1b[0m\x1b[?1049l";

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(STDOUT_FILENO, text.data(), text.size());
    if (size < 0 && errno != EINTR) {
      return;
    }
    text.remove_prefix(size > 0 ? static_cast<size_t>(size) : 0);
  }
}

void give_back(const termios& before) {
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before);
  write_all(kLeave);
}

winsize size_now() {
  winsize size = {};
  const bool is_known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size : winsize{24, 80, 0, 0};
}

}  // namespace

bool FullScreen::is_possible() {
  const char* const kind = std::getenv("TERM");
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && kind != nullptr &&
         std::strcmp(kind, "dumb") != 0;
}

FullScreen::FullScreen() {
  ::tcgetattr(STDIN_FILENO, &before_);
  start_guard();
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | ISIG | IEXTEN);
  raw.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  write_all(kEnter);
}

FullScreen::~FullScreen() {
  give_back(before_);
  const char is_well = 1;
  const NoSigpipe no_signal;  // the guard may be gone
  static_cast<void>(!::write(guard_.get(), &is_well, 1));
  guard_ = detail::FileDescriptor(-1);
  while (guard_process_ > 0 && ::waitpid(guard_process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

/// The guard reads from a pipe whose other end this process has. Signals of the terminal do not end
/// it, and SIGTTOU would stop it.
void FullScreen::start_guard() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return;
  }
  const HoldSignals until_it_ignores_them({SIGHUP, SIGINT, SIGTERM, SIGQUIT});
  guard_process_ = ::fork();
  if (guard_process_ == 0) {
    ::close(ends[1]);
    ::setsid();
    for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGTTOU, SIGPIPE}) {
      std::signal(signal, SIG_IGN);
    }
    until_it_ignores_them.release();
    char is_well = 0;
    while (::read(ends[0], &is_well, 1) < 0 && errno == EINTR) {
    }
    if (is_well == 0) {
      give_back(before_);
    }
    ::_exit(0);
  }
  ::close(ends[0]);
  guard_ = detail::FileDescriptor(ends[1]);
}

void FullScreen::draw(const std::vector<std::string>& lines) const {
  std::string text = "\x1b[H";
  for (size_t i = 0; i < lines.size(); ++i) {
    text += (i == 0 ? "" : "\r\n") + lines[i] + "\x1b[K";
  }
  write_all(text + "\x1b[J");
}

bool FullScreen::read_keys(int milliseconds, std::string& keys) const {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  keys.clear();
  if (::poll(&input, 1, milliseconds) <= 0) {
    return true;  // nothing, or a window that was resized
  }
  std::array<char, 64> bytes{};
  const ssize_t size = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (size > 0) {
    keys.assign(bytes.data(), static_cast<size_t>(size));
  }
  return size > 0 || (size < 0 && errno == EINTR);
}

int FullScreen::columns() {
  return size_now().ws_col;
}

int FullScreen::rows() {
  return size_now().ws_row;
}

}  // namespace rondo
