#include "callbacks/core/autorestart_callback.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include "core/error.h"
#include "core/file_system.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// A run that fails in update `fails_at`, started once more. \return what it threw; "" for nothing
std::string attempt(const TempDir& dir, int64_t max_restarts, int64_t fails_at) {
  ProbeCallback::Options probe;
  probe.train_batch_start = [fails_at](Trainer& trainer, const Batch&) {
    if (trainer.state().global_step() == fails_at) {
      throw std::runtime_error("planted");
    }
  };
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<ProbeCallback>(probe)};
  options.autorestart.max_num_restarts = max_restarts;
  options.checkpoint.steps = 1;
  options.loop.max_steps = 10;
  Trainer trainer(options, quiet_log());
  try {
    trainer.fit(tiny_loader("train"));
  } catch (const Error&) {
    return describe(std::current_exception());
  }
  return "";
}

bool has(const std::string& text, const char* piece) {
  return text.find(piece) != std::string::npos;
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/core/autorestart_callback");

TEST_CASE("T82: a negative number of restarts is refused; 0 and none leave the run unwatched") {
  const TempDir dir;
  CHECK_THROWS_AS(attempt(dir, -1, 3), Error);
  for (int i = 0; i < 4; ++i) {
    CHECK(has(attempt(dir, 0, 3), "planted"));
  }
  CHECK_FALSE(std::filesystem::exists(dir / "run/restarts.log"));
}

TEST_CASE("attempts in a row without progress are refused beyond the limit, with the last cause") {
  const TempDir dir;
  CHECK(has(attempt(dir, 2, 3), "planted"));  // saves update 3
  for (int i = 0; i < 3; ++i) {
    CHECK(has(attempt(dir, 2, 3), "planted"));  // begins at 3, ends at 3
  }
  const std::string refusal = attempt(dir, 2, 3);
  CHECK(has(refusal, "planted"));
  CHECK(has(refusal, "restarts.log"));
  CHECK(has(refusal, "3 attempts"));
  std::filesystem::remove(dir / "run/restarts.log");
  CHECK(attempt(dir, 2, -1).empty());
}

TEST_CASE("progress, and a run that ends well, begin the count anew") {
  const TempDir dir;
  for (const int64_t fails_at : {2, 4, 6, 8}) {
    CHECK(has(attempt(dir, 1, fails_at), "planted"));
  }
  CHECK(attempt(dir, 1, -1).empty());
  const std::string history = real_file_system()->read(dir / "run/restarts.log");
  CHECK(has(history, "start 0\nfailed 2 "));
  CHECK(has(history, "start 8\nend 10\n"));
}

TEST_SUITE_END();
