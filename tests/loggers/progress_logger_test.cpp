#include "loggers/progress_logger.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <regex>
#include <string>
#include <vector>

#include "core/file_system.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Sends standard error to a file while it lives.
class CapturedStderr {
 public:
  explicit CapturedStderr(std::filesystem::path path) : path_(std::move(path)) {
    std::fflush(stderr);
    saved_ = ::dup(STDERR_FILENO);
    std::FILE* const file = std::fopen(path_.c_str(), "w");
    ::dup2(::fileno(file), STDERR_FILENO);
    std::fclose(file);
  }

  ~CapturedStderr() {
    std::fflush(stderr);
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
  }

 private:
  std::filesystem::path path_;
  int saved_;
};

/// All matches of the pattern's group.
std::vector<std::string> found(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> all;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) {
    all.push_back((*match)[1].str());
  }
  return all;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_SUITE_BEGIN("loggers/progress_logger");

TEST_CASE("T129: a line on each log step has the loss of that update; batches count from 1") {
  for (const char* mode : {"eager", "traced"}) {
    CAPTURE(mode);
    const TempDir dir;
    std::vector<MemoryLogger::Entry> entries;
    MemoryLogger::Options memory;
    memory.entries = &entries;
    TrainerOptions options = tiny_options(dir / "run");
    options.backend.mode = mode;
    options.loggers = {use<ProgressLogger>(), use<MemoryLogger>(memory)};
    options.loop.max_steps = 7;
    options.loop.grad_accum_steps = 2;
    options.logging.log_steps = 3;
    {
      const CapturedStderr captured(dir / "lines.txt");
      Trainer trainer(options, quiet_log());
      trainer.fit(tiny_loader("train"), {tiny_loader("val")});
    }
    const std::string text = real_file_system()->read(dir / "lines.txt");
    CHECK(found(text, "Train Device=cpu, Step=(\\d+),") == Texts{"3", "6", "7"});
    Texts losses;
    for (const auto& value : values_of(entries, "loss")) {
      losses.push_back(fmt::format("{:.5f}", value.second));
    }
    CHECK(found(text, "Train [^\\n]*Loss=([0-9.]+),") == losses);
    CHECK(found(text, "Train [^\\n]*TimeRemaining=([0-9:]+)").size() == 3);
    CHECK(found(text, "Eval [^\\n]*GlobalStep=7, Batch=(\\d+),") == Texts{"3", "5"});
    losses.clear();
    for (const auto& value : values_of(entries, "val/val_loss")) {
      losses.push_back(fmt::format("{:.5f}", value.second));
    }
    CHECK(found(text, "Eval [^\\n]*Loss=([0-9.]+),") == losses);
  }
}

TEST_CASE("the line of a validation that was cut short shows no numbers, not even older ones") {
  const TempDir dir;
  int batches = 0;
  ProbeCallback::Options probe;
  probe.validate_batch_start = [&](Trainer& trainer, const Batch&) {
    if (++batches == 7) {  // the second of the second validation
      trainer.request_stop("enough");
    }
  };
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<ProbeCallback>(probe)};
  options.loggers = {use<ProgressLogger>()};
  options.loop.max_steps = 4;
  options.loop.eval_frequency = 2;
  {
    const CapturedStderr captured(dir / "lines.txt");
    Trainer(options, quiet_log()).fit(tiny_loader("train"), {tiny_loader("val")});
  }
  const std::string text = real_file_system()->read(dir / "lines.txt");
  const Texts lines = found(text, "\\| val:([^\\n]*)");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("loss") != std::string::npos);
  CHECK(lines[1].find("loss") == std::string::npos);
}

TEST_SUITE_END();
