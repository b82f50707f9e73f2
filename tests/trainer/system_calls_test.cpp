// Finds the steps in which the training thread asks the system for something, once steps are
// replayed. Linux sends a thread that wants it a signal for each of its system calls.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "trainer/steady_fit.h"

TEST_SUITE_BEGIN("trainer/system_calls");

// Where a sanitizer allocates, it asks the system for memory.
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__)

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <csignal>

using namespace rondo;
using namespace rondo::test;

namespace {

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_OFF 0
#define PR_SYS_DISPATCH_ON 1
#endif

volatile char selector = 0;  // what the kernel looks at: 1 sends this thread a SIGSYS for each call
volatile sig_atomic_t is_seen = 0;

/// Lets this call and all later ones pass: the call is made again on return.
void on_system_call(int, siginfo_t* info, void* context) {
  selector = 0;
  is_seen = 1;
  constexpr int64_t kLength = 2;  // of the instruction `syscall`
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  registers[REG_RIP] = reinterpret_cast<int64_t>(info->si_call_addr) - kLength;
  registers[REG_RAX] = info->si_syscall;
}

/// Watches the system calls of the thread that makes it.
class SystemCalls {
 public:
  SystemCalls() {
    struct sigaction action = {};
    action.sa_sigaction = on_system_call;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSYS, &action, &before_);
    works_ = ::prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector) == 0;
  }

  SystemCalls(const SystemCalls&) = delete;
  SystemCalls& operator=(const SystemCalls&) = delete;

  ~SystemCalls() {
    ::prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0);
    ::sigaction(SIGSYS, &before_, nullptr);
  }

  /// Linux 5.11 and later.
  bool works() const { return works_; }

  /// Whether `work` makes one.
  template <class Work>
  bool seen_in(Work work) {
    is_seen = 0;
    selector = 1;
    work();
    selector = 0;
    return is_seen != 0;
  }

 private:
  struct sigaction before_ = {};
  bool works_ = false;
};

}  // namespace

namespace {

/// Waits until every other thread of this process waits for something: the loader is as far ahead
/// as it goes. A thread that would run but gets no core is not waiting.
void wait_for_other_threads() {
  const auto is_waiting = [](const std::filesystem::path& thread) {
    std::ifstream file(thread / "stat");
    std::string stat;
    std::getline(file, stat);
    const size_t name_end = stat.rfind(')');
    return name_end == std::string::npos || stat.compare(name_end, 4, ") S ") == 0;
  };
  const std::string self = std::to_string(::syscall(SYS_gettid));
  const auto all_wait = [&] {
    const std::filesystem::directory_iterator threads("/proc/self/task");
    return std::all_of(begin(threads), end(threads), [&](const auto& entry) {
      return entry.path().filename() == self || is_waiting(entry.path());
    });
  };
  while (!all_wait()) {
    std::this_thread::yield();
  }
}

/// The most replayed steps in a row without a system call, at most a quarter of `ahead`. While its
/// queue is more than a quarter full, the loader is not woken.
int steps_in_a_row(const char* recipe, SystemCalls& calls, int ahead) {
  const TempDir dir;
  SteadyFit fit(recipe_without_events(recipe, dir, ahead));
  const auto steps_without_calls = [&] {
    wait_for_other_threads();
    int count = 0;
    while (count < ahead / 4 && !calls.seen_in([&] { fit.step(); })) {
      ++count;
    }
    return count;
  };
  // An attempt may meet the end of an epoch, or a loader that lost its core while it held a lock.
  int most = 0;
  for (int attempt = 0; attempt < 5 && most < ahead / 4; ++attempt) {
    most = std::max(most, steps_without_calls());
  }
  return most;
}

}  // namespace

TEST_CASE("replayed steps of the recipes ask the system for nothing, with the loader ahead") {
  SystemCalls calls;
  if (!calls.works()) {
    MESSAGE("skipped: this kernel does not tell of system calls");
    return;
  }
  if (calls.seen_in([] { std::chrono::steady_clock::now(); })) {
    MESSAGE("skipped: here asking for the time is a system call");
    return;
  }
  CHECK(calls.seen_in([] { ::syscall(SYS_getppid); }));
  constexpr int kAhead = 200;
  CHECK(steps_in_a_row("quickstart.toml", calls, kAhead) == kAhead / 4);
  if (std::getenv("RONDO_DATA") == nullptr) {
    MESSAGE("skipped: RONDO_DATA is not set");
    return;
  }
  CHECK(steps_in_a_row("mnist_cnn.toml", calls, kAhead) == kAhead / 4);
  CHECK(steps_in_a_row("shakespeare_gpt.toml", calls, kAhead) == kAhead / 4);
}

#else

TEST_CASE("replayed steps of the recipes ask the system for nothing, with the loader ahead") {
  MESSAGE("skipped: a sanitizer's heap asks the system for memory, or this is not Linux on x86-64");
}

#endif

TEST_SUITE_END();
