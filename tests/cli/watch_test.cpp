// `rondo watch` and `rondo fit --ui` in a terminal of their own.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "record/run_record.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("cli/watch");

namespace {

constexpr const char* kEnter = "\x1b[?1049h";
constexpr const char* kLeave = "\x1b[?1049l";

/// A program in a terminal of 80 columns and 24 rows.
class InTerminal {
 public:
  explicit InTerminal(std::vector<std::string> arguments) {
    winsize size = {24, 80, 0, 0};
    pid_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
    if (pid_ == 0) {
      ::setenv("TERM", "xterm", 1);
      std::vector<char*> pointers;
      for (std::string& argument : arguments) {
        pointers.push_back(argument.data());
      }
      pointers.push_back(nullptr);
      ::execv(pointers[0], pointers.data());
      ::_exit(127);
    }
  }

  InTerminal(const InTerminal&) = delete;
  InTerminal& operator=(const InTerminal&) = delete;

  ~InTerminal() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(terminal_);
  }

  /// Reads until what was printed since the last call holds the text. \return false when the
  /// program has closed the terminal, or a minute has passed
  bool shows(const std::string& text) {
    const size_t begin = seen_;
    while (printed_.find(text, begin) == std::string::npos) {
      pollfd input = {terminal_, POLLIN, 0};
      std::array<char, 4096> bytes{};
      const ssize_t size =
          ::poll(&input, 1, 60000) > 0 ? ::read(terminal_, bytes.data(), bytes.size()) : 0;
      if (size <= 0) {
        return false;
      }
      printed_.append(bytes.data(), static_cast<size_t>(size));
    }
    seen_ = printed_.find(text, begin) + text.size();
    return true;
  }

  void type(const std::string& keys) const {
    CHECK(::write(terminal_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
  }

  void kill() const { ::kill(pid_, SIGKILL); }

  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  bool has_echo() const {
    termios now = {};
    ::tcgetattr(terminal_, &now);
    return (now.c_lflag & ECHO) != 0;
  }

 private:
  int terminal_ = -1;
  pid_t pid_ = -1;
  std::string printed_;
  size_t seen_ = 0;
};

void write_record(const TempDir& dir) {
  std::ofstream(dir / kRecordFile)
      << R"({"kind":"session","step":0,"time":10,"run":"glyphs","version":"0.2.0","updates":20})"
      << "\n"
      << R"({"kind":"numbers","step":10,"time":20,"values":{"loss":2}})"
      << "\n"
      << R"({"kind":"numbers","step":20,"time":20,"values":{"loss":1}})"
      << "\n"
      << R"({"kind":"end","step":20,"time":75,"status":"done"})"
      << "\n";
  std::ofstream(dir / "latest_run.log") << "a line of the log\n";
}

}  // namespace

TEST_CASE("watch draws the run, follows keys and gives the terminal back") {
  const TempDir dir;
  write_record(dir);
  InTerminal rondo({RONDO_LAUNCHER, "watch", dir.path().string()});
  REQUIRE(rondo.shows(kEnter));
  REQUIRE(rondo.shows("glyphs  done"));
  REQUIRE(rondo.shows("loss 1"));
  CHECK_FALSE(rondo.has_echo());
  rondo.type("3");
  REQUIRE(rondo.shows("a line of the log"));
  rondo.type("q");
  REQUIRE(rondo.shows(kLeave));
  CHECK(rondo.wait() == 0);
  CHECK(rondo.has_echo());
}

TEST_CASE("a watch that is killed leaves a terminal that can be used") {
  const TempDir dir;
  write_record(dir);
  InTerminal rondo({RONDO_LAUNCHER, "watch", dir.path().string()});
  REQUIRE(rondo.shows("loss 1"));
  rondo.kill();
  REQUIRE(rondo.shows(kLeave));
  CHECK(rondo.has_echo());
  CHECK(rondo.wait() == -SIGKILL);
}

TEST_CASE("without a terminal watch and --ui are bad usage") {
  const TempDir dir;
  write_record(dir);
  const std::string launcher = RONDO_LAUNCHER;
  const std::string quiet = " < /dev/null > /dev/null 2>&1";
  const auto code = [&](const std::string& arguments) {
    return WEXITSTATUS(std::system((launcher + " " + arguments + quiet).c_str()));
  };
  CHECK(code("watch " + dir.path().string()) == 2);
  CHECK(code("fit --ui run.toml") == 2);
  CHECK(code("watch " + (dir / "missing").string()) == 1);
}

TEST_CASE("fit --ui shows the run that it starts, stops it on demand, and ends with its code") {
  const TempDir dir;
  std::ofstream(dir / "run.toml") << fmt::format(R"([trainer.init]
model_dir = "{}/run"
seed      = 1
model     = {{ name = "Mlp", sizes = [784, 10] }}
backend   = {{ mode = "eager" }}
loop      = {{ max_steps = 1000000 }}

[trainer.init.optimizer.SGD]
lr = 0.1

[trainer.fit]
train_dataloader = {{ dataset = "Glyphs", size = 40, batch_size = 20 }}
)",
                                                 dir.path().string());
  InTerminal rondo({RONDO_LAUNCHER, "fit", "--ui", (dir / "run.toml").string()});
  REQUIRE(rondo.shows("run  running"));
  REQUIRE(rondo.shows("loss"));
  rondo.type("s");
  REQUIRE(rondo.shows("save?"));
  rondo.type("y");
  REQUIRE(rondo.shows(kLeave));
  REQUIRE(rondo.shows("stopped by SIGTERM"));
  CHECK(rondo.wait() == 128 + SIGTERM);
  CHECK(read_record(dir / "run").status == RunStatus::Stopped);
  CHECK_FALSE(read_record(dir / "run").saves.empty());
}

TEST_SUITE_END();
