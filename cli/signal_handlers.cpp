#include "cli/signal_handlers.h"

#include <fcntl.h>
#include <unistd.h>

namespace rondo {

void SignalHandlers::add(std::initializer_list<int> signals, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (const int signal : signals) {
    struct sigaction before = {};
    ::sigaction(signal, nullptr, &before);
    if (signal != SIGHUP || before.sa_handler != SIG_IGN) {
      ::sigaction(signal, &action, nullptr);
      before_.emplace_back(signal, before);
    }
  }
}

void SignalHandlers::restore() {
  for (const auto& [signal, before] : before_) {
    ::sigaction(signal, &before, nullptr);
  }
  before_.clear();
}

HoldSignals::HoldSignals(std::initializer_list<int> signals) {
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : signals) {
    sigaddset(&held, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &held, &before_);
}

void HoldSignals::release() const {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

// The lowest number that is free is the one that `open` takes.
void open_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) == -1) {
      ::open("/dev/null", O_RDWR);  // NOLINT(android-cloexec-open): the engine keeps it
    }
  }
}

void survive_failing_output() {
  for (const int signal : {SIGPIPE, SIGXFSZ}) {
    std::signal(signal, [](int) {});
  }
}

}  // namespace rondo
