#pragma once

namespace rondo {

class Trainer;

/// While it lives, Ctrl-C and SIGTERM ask the Trainer to stop after the current update; a second
/// one ends the process at once. SIGUSR1 asks for a checkpoint after the current update; the run
/// goes on. One at a time.
class StopOnSignal {
 public:
  explicit StopOnSignal(Trainer& trainer);
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  ~StopOnSignal();

  /// The exit code that the signal asks for, 128 + its number; 0 when none came.
  int exit_code() const;
};

}  // namespace rondo
