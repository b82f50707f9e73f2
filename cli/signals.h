#pragma once

#include "cli/signal_handlers.h"

namespace rondo {

class Trainer;

/// While it lives, Ctrl-C, SIGTERM and SIGHUP ask the Trainer to stop after the current update. A
/// second Ctrl-C or SIGTERM ends the process at once; SIGHUP never does, because a terminal that is
/// closed sends several. SIGUSR1 asks for a checkpoint after the current update; the run goes on.
/// One at a time.
class StopOnSignal {
 public:
  explicit StopOnSignal(Trainer& trainer);
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  ~StopOnSignal();

  /// The exit code that the first signal asks for, 128 + its number; 0 when none came.
  int exit_code() const;

 private:
  SignalHandlers handlers_;
};

}  // namespace rondo
