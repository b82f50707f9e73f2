#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>

namespace rondo {

/// How a process ended.
struct ChildEnd {
  int code = 0;    ///< its exit code, when it exited
  int signal = 0;  ///< the signal that ended it; 0: none

  bool is_done() const { return code == 0 && signal == 0; }
};

/// A copy of this process that runs `work` and exits with the code which that returns, or 1 after
/// telling what it threw. It dies when this process does. To be made before this process has
/// threads. \throws IoError
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<int()>& work);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  /// Kills it when it has not been waited for.
  ~ChildProcess();

  ChildEnd wait();

  /// Waits, but no longer than this. \return nothing when it runs on
  std::optional<ChildEnd> wait_for(std::chrono::nanoseconds time);

  void send(int signal) const;

 private:
  pid_t pid_ = -1;
};

}  // namespace rondo
