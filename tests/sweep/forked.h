#pragma once

#include <functional>
#include <string>

namespace rondo::test {

/// The ending of a process that read memory which it may not, without writing there. Known on
/// x86-64.
constexpr const char* kForbiddenRead = "a read of memory that is not its own";

/// What a function in a process of its own left.
struct ForkedRun {
  std::string said;    ///< what it wrote, as far as it got
  std::string ending;  ///< how the process was ended, such as by a signal; "" when it returned
};

/// Calls `run` in a copy of this process, which has one thread only, and waits for its end.
/// \param run  gets a function that keeps a text even when the process ends right after it
ForkedRun run_forked(
    const std::function<void(const std::function<void(const std::string&)>& say)>& run);

}  // namespace rondo::test
