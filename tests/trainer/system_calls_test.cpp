// Finds the steps in which the training thread asks the system for something, once steps are
// replayed.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "trainer/steady_fit.h"

TEST_SUITE_BEGIN("trainer/system_calls");

#if defined(__x86_64__) && defined(__linux__)

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
volatile int first_call = -1;

/// Lets this call and all later ones pass: the call is made again on return.
void on_system_call(int, siginfo_t* info, void* context) {
  selector = 0;
  first_call = info->si_syscall;
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

  /// The number of the first system call that `work` makes; -1: it makes none.
  template <class Work>
  int first_of(Work work) {
    first_call = -1;
    selector = 1;
    work();
    selector = 0;
    return first_call;
  }

 private:
  struct sigaction before_ = {};
  bool works_ = false;
};

}  // namespace

TEST_CASE("replayed steps of the quickstart ask the system for nothing but to wake the loader") {
  const TempDir dir;
  SteadyFit fit(recipe_without_events("quickstart.toml", dir));
  SystemCalls calls;
  if (!calls.works()) {
    MESSAGE("skipped: this kernel does not tell of system calls");
    return;
  }
  CHECK(calls.first_of([] { ::syscall(SYS_getppid); }) == SYS_getppid);
  constexpr int kSteps = 200;
  std::vector<int> found;
  for (int i = 0; i < kSteps; ++i) {
    const int call = calls.first_of([&] { fit.step(); });
    if (call >= 0) {
      found.push_back(call);
    }
  }
  for (const int call : found) {
    MESSAGE(call);
  }
  MESSAGE(found.size());
}

#endif
