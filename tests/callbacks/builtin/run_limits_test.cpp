// RunTimeLimit, HangWatchdog and SkipSamples.

#include <doctest/doctest.h>
#include <torch/types.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "callbacks/builtin/hang_watchdog.h"
#include "callbacks/builtin/run_time_limit.h"
#include "callbacks/builtin/skip_samples.h"
#include "core/error.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("callbacks/builtin/run_limits");

TEST_CASE("RunTimeLimit ends a fit after its update, saved, and a later start continues") {
  for (const char* mode : {"eager", "traced"}) {
    const TempDir dir;
    TrainerOptions options = tiny_options(dir / "run");
    options.backend.mode = mode;
    options.loop.max_steps = 6;
    options.checkpoint.steps = 100;
    options.callbacks = {use<RunTimeLimit>({1e-9})};
    const FitResult first = Trainer(options, quiet_log()).fit(tiny_loader("train"));
    CHECK(first.steps == 1);
    CHECK(first.stop_reason.find("RunTimeLimit") != std::string::npos);
    CHECK(first.last_checkpoint.has_value());
    options.callbacks = {use<RunTimeLimit>({1e6})};
    const FitResult second = Trainer(options, quiet_log()).fit(tiny_loader("train"));
    CHECK(second.steps == 6);
    CHECK(second.steps_now == 5);
  }
  CHECK_THROWS_AS(RunTimeLimit({0.0}), UsageError);
}

TEST_CASE("HangWatchdog tells of a batch that does not end, once, and that it ended") {
  const TempDir dir;
  std::mutex mutex;
  std::vector<std::string> lines;
  const auto count = [&](const char* text) {
    const std::lock_guard<std::mutex> lock(mutex);
    int64_t found = 0;
    for (const std::string& line : lines) {
      found += line.find(text) != std::string::npos ? 1 : 0;
    }
    return found;
  };
  ProbeCallback::Options probe;
  probe.train_batch_start = [&](Trainer& trainer, const Batch&) {
    while (trainer.state().global_step() == 2 && count("no batch has finished") == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  };
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 3;
  HangWatchdog::Options watchdog;
  watchdog.timeout_s = 0.5;
  options.callbacks = {use<ProbeCallback>(probe), use<HangWatchdog>(watchdog)};
  const TextLog log = TextLog::to([&](LogLevel, std::string_view text) {
    const std::lock_guard<std::mutex> lock(mutex);
    lines.emplace_back(text);
  });
  Trainer(options, log).fit(tiny_loader("train"));
  CHECK(count("no batch has finished") >= 1);
  CHECK(count("alert: a batch took") >= 1);
  watchdog.timeout_s = 0.0;
  CHECK_THROWS_AS(HangWatchdog{watchdog}, UsageError);
  watchdog.timeout_s = 1.0;
  watchdog.then = "wait";
  CHECK_THROWS_AS(HangWatchdog{watchdog}, UsageError);
}

TEST_CASE("SkipSamples passes over samples when a fit continues from that checkpoint") {
  const TempDir dir;
  std::vector<std::vector<float>> seen;
  ProbeCallback::Options probe;
  probe.train_batch_start = [&](Trainer&, const Batch& batch) {
    const at::Tensor x = batch["x"].contiguous();
    seen.emplace_back(x.data_ptr<float>(), x.data_ptr<float>() + x.numel());
  };
  const auto train = [&](int64_t updates, const std::vector<Factory<Callback>>& more) {
    seen.clear();
    TrainerOptions options = tiny_options(dir / "run");
    options.loop.max_steps = updates;
    options.callbacks = more;
    options.callbacks.push_back(use<ProbeCallback>(probe));
    return Trainer(options, quiet_log()).fit(tiny_loader("train"));
  };
  train(5, {});
  const std::vector<std::vector<float>> pass = seen;  // 5 batches of 2 samples
  std::filesystem::remove_all(dir / "run");
  train(2, {});
  SkipSamples::Options skip;
  skip.samples = 4;
  skip.after = 2;
  train(3, {use<SkipSamples>(skip)});
  REQUIRE(seen.size() == 1);
  CHECK(seen[0] == pass[4]);
  skip.samples = 100;
  skip.after = 3;
  CHECK_THROWS(train(4, {use<SkipSamples>(skip)}));
  skip.after = 1;  // another checkpoint
  train(4, {use<SkipSamples>(skip)});
  CHECK(seen.size() == 1);
}

TEST_SUITE_END();
