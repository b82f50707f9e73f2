#include "callbacks/backend_callback.h"

#include <doctest/doctest.h>

#include <string>

#include "callbacks/log_optimizer_param_group.h"
#include "core/file_system.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

TEST_SUITE_BEGIN("callbacks/backend_callback");

using namespace rondo;
using namespace rondo::test;

TEST_CASE("what is told of a run's steps names the operators whose results LibTorch allocates") {
  const auto told = [](const std::string& executor) {
    const TempDir dir;
    TrainerOptions options = tiny_options(dir / "run");
    options.backend.mode = "traced";
    options.backend.executor = executor;
    options.callbacks = {use<LogOptimizerParamGroup>()};  // copies the learning rate
    options.loop.max_steps = 4;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    return real_file_system()->read(trainer.state().artifact_dir / "steps/train_update.0.json");
  };
  CHECK(told("plan").find("\"adopted_operators\": {\"aten::clone\": 1}") != std::string::npos);
  CHECK(told("interpreter").find("\"adopted_operators\": {}") != std::string::npos);
}

TEST_SUITE_END();
