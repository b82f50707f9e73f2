#pragma once

#include <csignal>

namespace rondo {

/// While it lives, a write of this thread to a pipe that nobody reads fails with EPIPE and raises
/// no SIGPIPE. What the process does with that signal stays as it is.
class NoSigpipe {
 public:
  NoSigpipe();
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;
  ~NoSigpipe();

 private:
  sigset_t mask_before_ = {};
  bool was_pending_ = false;
};

}  // namespace rondo
