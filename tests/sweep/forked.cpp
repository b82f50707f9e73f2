#include "sweep/forked.h"

#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace rondo::test {

namespace {

constexpr unsigned kMostSeconds = 600;  // a call that never returns is an ending, too

void write_all(int file, const std::string& text) {
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(file, text.data() + written, text.size() - written);
    if (count < 0) {
      ::_exit(EXIT_FAILURE);
    }
    written += static_cast<size_t>(count);
  }
}

std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t count = ::read(file, part.data(), part.size());
    if (count > 0) {
      text.append(part.data(), static_cast<size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      return text;
    }
  }
}

constexpr int kReadsCode = 3;

#ifdef __x86_64__
void end_by_fault(int signal, siginfo_t* /*fault*/, void* context) {
  constexpr greg_t kIsWrite = 2;  // of the page fault's error code
  const bool is_write =
      (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kIsWrite) != 0;
  if (!is_write) {
    ::_exit(kReadsCode);
  }
  ::signal(signal, SIG_DFL);  // the write is done again, and ends the process
}

void tell_reads_from_writes() {
  struct sigaction action = {};
  action.sa_sigaction = end_by_fault;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, nullptr);
}
#else
void tell_reads_from_writes() {}
#endif

std::string ending_of(int status) {
  if (WIFSIGNALED(status)) {
    return ::strsignal(WTERMSIG(status));
  }
  const int code = WEXITSTATUS(status);
  if (code == kReadsCode) {
    return kForbiddenRead;
  }
  return code == EXIT_SUCCESS ? "" : "exit code " + std::to_string(code);
}

}  // namespace

ForkedRun run_forked(
    const std::function<void(const std::function<void(const std::string&)>& say)>& run) {
  std::array<int, 2> pipe_ends;
  if (::pipe(pipe_ends.data()) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe");
  }
  const pid_t child = ::fork();
  if (child < 0) {
    throw std::system_error(errno, std::generic_category(), "fork");
  }
  if (child == 0) {
    ::close(pipe_ends[0]);
    ::alarm(kMostSeconds);
    tell_reads_from_writes();
    run([&](const std::string& text) { write_all(pipe_ends[1], text); });
    ::_exit(EXIT_SUCCESS);
  }
  ::close(pipe_ends[1]);
  ForkedRun result;
  result.said = read_all(pipe_ends[0]);
  ::close(pipe_ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  result.ending = ending_of(status);
  return result;
}

}  // namespace rondo::test
