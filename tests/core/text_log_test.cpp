// Output that fails: nothing ends, and what can be written is written.

#include "core/log.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>

#include "core/file_system.h"
#include "core/no_sigpipe.h"
#include "core/standard_error.h"
#include "support/temp_dir.h"

using namespace rondo;

TEST_SUITE_BEGIN("core/text_log");

namespace {

/// Runs `work` in a process whose standard error is a pipe that nobody reads and that dies of
/// SIGPIPE as programs do. \return its exit code, or -1 - the signal that ended it
int with_broken_stderr(const std::function<int()>& work) {
  int ends[2] = {};
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    ::dup2(ends[1], STDERR_FILENO);
    std::signal(SIGPIPE, SIG_DFL);
    ::_exit(work());
  }
  ::close(ends[0]);
  ::close(ends[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -1 - WTERMSIG(status) : WEXITSTATUS(status);
}

size_t count(const std::string& text, const std::string& piece) {
  size_t found = 0;
  for (size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) {
    ++found;
  }
  return found;
}

}  // namespace

TEST_CASE("a log whose standard error is a closed pipe goes on, and SIGPIPE stays as it was") {
  const int code = with_broken_stderr([] {
    const TextLog log;
    for (int i = 0; i < 3; ++i) {
      log.warning("nobody reads this");
      write_to_stderr("nor this\n");
    }
    struct sigaction action = {};
    ::sigaction(SIGPIPE, nullptr, &action);
    sigset_t blocked;
    ::sigprocmask(SIG_BLOCK, nullptr, &blocked);
    sigset_t pending;
    ::sigpending(&pending);
    const bool is_as_before = action.sa_handler == SIG_DFL && sigismember(&blocked, SIGPIPE) == 0 &&
                              sigismember(&pending, SIGPIPE) == 0;
    return is_as_before ? 7 : 8;
  });
  CHECK(code == 7);
}

TEST_CASE("a SIGPIPE that the program itself holds back is not taken from it") {
  const int code = with_broken_stderr([] {
    sigset_t sigpipe;
    sigemptyset(&sigpipe);
    sigaddset(&sigpipe, SIGPIPE);
    ::sigprocmask(SIG_BLOCK, &sigpipe, nullptr);
    std::raise(SIGPIPE);
    { const NoSigpipe guard; }
    sigset_t pending;
    ::sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1 ? 7 : 8;
  });
  CHECK(code == 7);
}

TEST_CASE("a full disk under one log file costs the other files nothing") {
  const test::TempDir dir;
  const TextLog log = TextLog::to([](LogLevel, std::string_view) {});
  log.add_file("/dev/full");
  log.add_file(dir / "made/for/it/run.log");
  constexpr size_t kLines = 300;
  for (size_t i = 0; i < kLines; ++i) {
    log.warning("one line of many, long enough to fill the buffer of a file some times over");
  }
  log.flush();
  log.remove_file("/dev/full");
  log.remove_file(dir / "made/for/it/run.log");
  const std::string text = real_file_system()->read(dir / "made/for/it/run.log");
  CHECK(count(text, "one line of many") == kLines);
}

TEST_CASE("the first file also gets what was said before it, and later files do not") {
  const test::TempDir dir;
  const TextLog log = TextLog::to([](LogLevel, std::string_view) {});
  log.warning("said early");
  log.add_file(dir / "first.log");
  log.info("said later");
  log.add_file(dir / "second.log");
  log.flush();
  const std::string first = real_file_system()->read(dir / "first.log");
  CHECK(count(first, "said early") == 1);
  CHECK(first.find("said early") < first.find("said later"));
  CHECK(real_file_system()->read(dir / "second.log").empty());
}

TEST_SUITE_END();
