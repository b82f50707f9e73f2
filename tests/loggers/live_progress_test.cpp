// The live block, as a terminal gets it.

#include "loggers/live_progress.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "core/standard_error.h"
#include "loggers/loggers.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("loggers/live_progress");

namespace {

/// Makes standard error a terminal while it lives.
class Terminal {
 public:
  explicit Terminal(const char* kind = "xterm") : before_(::dup(STDERR_FILENO)) {
    ::setenv("TERM", kind, 1);
    master_ = ::posix_openpt(O_RDWR | O_NOCTTY);
    REQUIRE(::grantpt(master_) == 0);
    REQUIRE(::unlockpt(master_) == 0);
    const int slave = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    REQUIRE(slave >= 0);
    std::fflush(stderr);
    ::dup2(slave, STDERR_FILENO);
    ::close(slave);
  }

  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  ~Terminal() {
    give_back();
    ::close(master_);
  }

  void resize(unsigned short columns) {
    winsize size = {};
    size.ws_col = columns;
    size.ws_row = 24;
    REQUIRE(::ioctl(master_, TIOCSWINSZ, &size) == 0);
  }

  /// What was written to it; it is standard error no more.
  std::string text() {
    ::fcntl(master_, F_SETFL, O_NONBLOCK);
    std::string all;
    char buffer[4096];
    for (ssize_t got; (got = ::read(master_, buffer, sizeof buffer)) > 0;) {
      all.append(buffer, static_cast<size_t>(got));
    }
    give_back();
    return all;
  }

 private:
  void give_back() {
    if (before_ >= 0) {
      std::fflush(stderr);
      ::dup2(before_, STDERR_FILENO);
      ::close(before_);
      before_ = -1;
    }
  }

  int before_;
  int master_ = -1;
};

TrainerOptions run_options(const std::filesystem::path& run) {
  TrainerOptions options = tiny_options(run);
  options.loop.max_steps = 3;
  options.loggers = {use<ProgressLogger>()};
  return options;
}

/// How much of the text is before the last time that the block was taken away.
size_t last_erasing(const std::string& text) {
  return text.rfind("\x1b[J");
}

}  // namespace

TEST_CASE("what is written scrolls above the lines that stay below") {
  Terminal terminal;
  show_below_stderr({"one", "two"});
  write_to_stderr("message\n");
  write_to_stderr("open");
  show_below_stderr({"three"});
  show_below_stderr({});
  write_to_stderr("end\n");
  CHECK(terminal.text() ==
        "one\r\ntwo"
        "\r\x1b[A\x1b[Jmessage\r\none\r\ntwo"
        "\r\x1b[A\x1b[Jopen\r\none\r\ntwo"
        "\r\x1b[A\x1b[Jthree"
        "\r\x1b[Jend\r\n");
}

TEST_CASE("a block that a narrower window has wrapped is taken away whole") {
  Terminal terminal;
  terminal.resize(20);
  show_below_stderr({"123456789012345", "2"});
  terminal.resize(10);
  show_below_stderr({"short"});
  show_below_stderr({});
  CHECK(terminal.text() ==
        "123456789012345\r\n2"
        "\r\x1b[A\x1b[A\x1b[Jshort"
        "\r\x1b[J");
}

TEST_CASE("a fit on a terminal draws its block and leaves only the results") {
  const TempDir dir;
  Terminal terminal;
  Trainer(run_options(dir / "run"), quiet_log()).fit(tiny_loader("train"), {tiny_loader("val")});
  const std::string text = terminal.text();
  const size_t block = text.find("run     ");
  REQUIRE(block != std::string::npos);
  CHECK(text.find("/3 updates") != std::string::npos);
  CHECK(text.find("train   ") > block);
  CHECK(text.find("| Train ") == std::string::npos);  // the block has it
  CHECK(text.find("| val: ") != std::string::npos);
  CHECK(text.find("| Trained 6 samples") > last_erasing(text));
  CHECK(text.find("run     ", last_erasing(text)) == std::string::npos);
}

TEST_CASE("the block shows the metrics that globs choose") {
  const TempDir dir;
  ProbeCallback::Options probe;
  probe.train_batch_end = [](Trainer& trainer) {
    trainer.log_metrics({{"extra/a", 1.5}, {"other", 2.5}});
  };
  // The block is drawn once in 100 ms: the third batch comes later than that.
  probe.train_batch_start = [](Trainer&, const Batch&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(110));
  };
  TrainerOptions options = run_options(dir / "run");
  options.callbacks = {use<ProbeCallback>(probe)};
  ProgressLogger::Options progress;
  progress.metrics = {"extra/*"};
  options.loggers = {use<ProgressLogger>(progress)};
  Terminal terminal;
  Trainer(options, quiet_log()).fit(tiny_loader("train"), {});
  const std::string text = terminal.text();
  CHECK(text.find("extra/a 1.5") != std::string::npos);
  CHECK(text.find("other") == std::string::npos);
  CHECK(text.find("loss ") == std::string::npos);
}

TEST_CASE("a fit that fails takes its block away") {
  const TempDir dir;
  ProbeCallback::Options probe;
  probe.train_batch_start = [](Trainer& trainer, const Batch&) {
    if (trainer.state().global_step() == 2) {
      throw std::runtime_error("dies");
    }
  };
  TrainerOptions options = run_options(dir / "run");
  options.callbacks = {use<ProbeCallback>(probe)};
  Terminal terminal;
  CHECK_THROWS(Trainer(options, quiet_log()).fit(tiny_loader("train"), {}));
  const std::string text = terminal.text();
  CHECK(text.find("run     ") != std::string::npos);
  CHECK(text.find("run     ", last_erasing(text)) == std::string::npos);
}

TEST_CASE("a terminal that cannot move its cursor gets lines") {
  const TempDir dir;
  Terminal terminal("dumb");
  Trainer(run_options(dir / "run"), quiet_log()).fit(tiny_loader("train"), {});
  const std::string text = terminal.text();
  CHECK(text.find("| Train Device=cpu, Step=3") != std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_SUITE_END();
