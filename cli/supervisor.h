#pragma once

#include <cstdint>
#include <functional>

namespace rondo {

/// Runs `work` in a process of its own, and again when that dies or fails, until it has failed more
/// than `max_restarts` times in a row without a step forward. The first restart after progress
/// comes at once, each further one waits twice as long as the one before, a minute at most. SIGINT,
/// SIGTERM, SIGHUP and SIGUSR1 are handed on to the process. To be called before this process has
/// threads. \param work      gets how often it was started again; returns an exit code; 1 is a
/// failure, any
///                  other is final
/// \param progress  how far the run has come, asked between two attempts
/// \return the exit code of the last attempt; 128 + the signal that it died of
int supervise(int64_t max_restarts,
              const std::function<int(int64_t restarts)>& work,
              const std::function<int64_t()>& progress);

}  // namespace rondo
