#include "core/no_sigpipe.h"

#include <cerrno>

namespace rondo {

namespace {

sigset_t sigpipe_alone() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

bool is_sigpipe_pending() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGPIPE) == 1;
}

}  // namespace

NoSigpipe::NoSigpipe() : was_pending_(is_sigpipe_pending()) {
  const sigset_t sigpipe = sigpipe_alone();
  pthread_sigmask(SIG_BLOCK, &sigpipe, &mask_before_);
}

NoSigpipe::~NoSigpipe() {
  const int error = errno;
  if (!was_pending_ && is_sigpipe_pending()) {  // takes the one that a write raised
    const sigset_t sigpipe = sigpipe_alone();
    const timespec no_time = {};
    while (sigtimedwait(&sigpipe, nullptr, &no_time) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  errno = error;
}

}  // namespace rondo
