#include "cli/child_process.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <thread>

#include "cli/exit_codes.h"
#include "core/error.h"

namespace rondo {

namespace {

ChildEnd end_of(int status) {
  return WIFSIGNALED(status) ? ChildEnd{0, WTERMSIG(status)} : ChildEnd{WEXITSTATUS(status), 0};
}

[[noreturn]] void run(const std::function<int()>& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int code = 1;
  try {
    code = work();
  } catch (...) {
    code = exit_code_of(std::current_exception());
    std::cerr << describe(std::current_exception()) << std::endl;
  }
  std::cout << std::flush;
  ::_exit(code);  // what the parent would do at its end is not the child's to do
}

}  // namespace

ChildProcess::ChildProcess(const std::function<int()>& work) {
  std::cout << std::flush;
  std::cerr << std::flush;
  pid_ = ::fork();
  if (pid_ == 0) {
    run(work);
  }
  if (pid_ < 0) {
    throw IoError("cannot start a process", errno);
  }
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    send(SIGKILL);
    wait();
  }
}

ChildEnd ChildProcess::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return end_of(status);
}

std::optional<ChildEnd> ChildProcess::wait_for(std::chrono::nanoseconds time) {
  constexpr std::chrono::milliseconds kPoll(1);
  const auto deadline = std::chrono::steady_clock::now() + time;
  while (true) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return end_of(status);
    }
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero()) {
      return std::nullopt;
    }
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, kPoll));
  }
}

void ChildProcess::send(int signal) const {
  if (pid_ > 0) {
    ::kill(pid_, signal);
  }
}

}  // namespace rondo
