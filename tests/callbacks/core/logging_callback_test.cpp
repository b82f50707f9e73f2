#include "callbacks/core/logging_callback.h"

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

TEST_SUITE_BEGIN("callbacks/core/logging_callback");

TEST_CASE("T96: run.log has a link to the newest, and holds the exception that ended a run") {
  const TempDir dir;
  ProbeCallback::Options probe;
  probe.train_batch_end = [](Trainer&) { throw std::runtime_error("planted cause"); };
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<ProbeCallback>(probe)};
  const Trainer older(options, quiet_log());
  Trainer trainer(options, quiet_log());
  const std::filesystem::path log = trainer.state().artifact_dir / "run.log";
  CHECK(std::filesystem::exists(log));
  CHECK(std::filesystem::read_symlink(dir / "run/latest_run.log").is_relative());
  CHECK(std::filesystem::equivalent(dir / "run/latest_run.log", log));
  CHECK_THROWS_AS(trainer.fit(tiny_loader("train")), HookError);
  const std::string text = real_file_system()->read(log);
  CHECK(text.find("planted cause") != std::string::npos);
  CHECK(text.find("ProbeCallback.on_train_batch_end") != std::string::npos);
}

TEST_SUITE_END();
