// The program `rondo` when nobody takes what it prints, or a terminal goes away.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_dir.h"

using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("cli/failing_output");

namespace {

/// A fit of 1000 updates that logs each of them and saves none but the last; with more arguments.
std::vector<std::string> fit(const TempDir& dir, const std::vector<std::string>& arguments = {}) {
  std::ofstream(dir / "run.toml") << fmt::format(R"([trainer.init]
model_dir = "{}/run"
seed      = 1
model     = {{ name = "Mlp", sizes = [784, 10] }}
backend   = {{ mode = "eager" }}
loop      = {{ max_steps = 1000 }}
logging   = {{ log_steps = 1 }}

[trainer.init.optimizer.SGD]
lr = 0.1

[trainer.fit]
train_dataloader = {{ dataset = "Glyphs", size = 40, batch_size = 20 }}
)",
                                                 dir.path().string());
  std::vector<std::string> line = {RONDO_LAUNCHER, "fit", (dir / "run.toml").string()};
  line.insert(line.end(), arguments.begin(), arguments.end());
  return line;
}

std::vector<std::string> endless_logging_fit(const TempDir& dir) {
  return fit(dir, {"trainer.init.loop.max_steps=1000000"});
}

bool has_checkpoint(const TempDir& dir) {
  for (const auto& entry : fs::directory_iterator(dir / "run")) {
    if (entry.path().extension() == ".pt") {
      return true;
    }
  }
  return false;
}

/// Reads until `text` has come; true when it has.
bool read_until(int fd, const std::string& text) {
  std::string seen;
  char buffer[4096];
  while (seen.find(text) == std::string::npos) {
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count <= 0) {
      return false;
    }
    seen.append(buffer, static_cast<size_t>(count));
  }
  return true;
}

/// A named pipe, for a program to write to.
fs::path pipe_in(const TempDir& dir) {
  const fs::path path = dir / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  return path;
}

/// Reads what comes through a pipe until there is progress, and then goes away.
void read_a_little(const fs::path& pipe) {
  const int fd = ::open(pipe.c_str(), O_RDONLY);
  CHECK(read_until(fd, "Loss="));
  ::close(fd);
}

/// While it lives, no file that a process started meanwhile writes can grow beyond a size.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }

  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

  ~SmallFiles() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("`| tee log`, Ctrl-C: the reader is gone, and the run saves and exits with 130") {
  const TempDir dir;
  const fs::path pipe = pipe_in(dir);
  Process process(endless_logging_fit(dir), pipe);
  read_a_little(pipe);
  process.send(SIGINT);
  CHECK(process.wait() == 128 + SIGINT);
  CHECK(has_checkpoint(dir));
}

TEST_CASE("`| head`: the reader is gone, and the run goes on to its end") {
  const TempDir dir;
  const fs::path pipe = pipe_in(dir);
  Process process(fit(dir, {"--json"}), pipe);
  read_a_little(pipe);
  CHECK(process.wait() == 0);
  CHECK(fs::exists(dir / "run/checkpoint_1000.pt"));
}

TEST_CASE("the same in a process that is started again when it dies") {
  const TempDir dir;
  const fs::path pipe = pipe_in(dir);
  Process process(fit(dir, {"--max-restarts=2"}), pipe);
  read_a_little(pipe);
  CHECK(process.wait() == 0);
  CHECK(fs::exists(dir / "run/checkpoint_1000.pt"));
}

TEST_CASE("`> /dev/full`: a full disk under the output costs nothing") {
  const TempDir dir;
  Process process(fit(dir, {"--json"}), "/dev/full");
  CHECK(process.wait() == 0);
  CHECK(fs::exists(dir / "run/checkpoint_1000.pt"));
}

TEST_CASE("`>&- 2>&-`: nothing that is printed gets into a file of the run") {
  const TempDir dir;
  std::vector<std::string> line = fit(dir);
  line.insert(line.begin(), {"/bin/sh", "-c", R"(exec "$@" <&- >&- 2>&-)", "sh"});
  Process process(line, dir / "out");
  CHECK(process.wait() == 0);
  std::ifstream record(dir / "run/record.jsonl");
  int64_t lines = 0;
  for (std::string text; std::getline(record, text); ++lines) {
    CHECK_MESSAGE(text.front() == '{', text);
  }
  CHECK(lines > 1000);
}

TEST_CASE("logs and metrics that outgrow what a file may hold cost nothing but themselves") {
  const TempDir dir;
  constexpr rlim_t kMost = 65536;  // a checkpoint is half of it, a thousand metrics are more
  std::vector<std::string> line = fit(dir);
  {
    const SmallFiles small(kMost);
    Process process(line, dir / "out");
    CHECK(process.wait() == 0);
  }
  CHECK(fs::file_size(dir / "run/metrics.jsonl") == kMost);
  CHECK(fs::exists(dir / "run/checkpoint_1000.pt"));
}

TEST_CASE("a terminal that is closed: the run finishes its update, saves, and exits with 129") {
  const char* kind = nullptr;
  const char* shown = nullptr;
  SUBCASE("with lines") {
    kind = "dumb";
    shown = "Loss=";
  }
  SUBCASE("with a live block") {
    kind = "xterm";
    shown = " updates  epoch ";
  }
  const TempDir dir;
  std::vector<std::string> line = endless_logging_fit(dir);
  std::vector<char*> arguments;
  for (std::string& argument : line) {
    arguments.push_back(argument.data());
  }
  arguments.push_back(nullptr);
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  REQUIRE(child >= 0);
  if (child == 0) {
    ::setenv("TERM", kind, 1);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  CHECK(read_until(terminal, shown));
  ::close(terminal);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 128 + SIGHUP);
  CHECK(has_checkpoint(dir));
}

TEST_SUITE_END();
