#include "callbacks/core/backend_callback.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <algorithm>
#include <string>
#include <vector>

#include "callbacks/builtin/log_optimizer_param_group.h"
#include "core/available_cores.h"
#include "core/file_system.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "support/with_threads.h"
#include "trainer/trainer.h"

TEST_SUITE_BEGIN("callbacks/core/backend_callback");

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

TEST_CASE("a step with a hook that reads a number trains as eager does, and the run says so") {
  const auto run = [](const std::string& mode, std::vector<std::string>* lines, std::string* told) {
    const TempDir dir;
    TrainerOptions options = tiny_options(dir / "run");
    options.backend.mode = mode;
    options.backend.on_refusal = "eager";
    ProbeCallback::Options hooks;
    hooks.after_backward = [](Trainer&, const Outputs& outputs) {
      CHECK(outputs["loss"].item<float>() > 0.0F);
    };
    options.callbacks = {use<ProbeCallback>(hooks)};
    options.loop.max_steps = 8;
    Trainer trainer(options, quiet_log(lines));
    const FitResult result = trainer.fit(tiny_loader("train"));
    if (told != nullptr) {
      REQUIRE(result.eager_steps.size() == 1);
      CHECK(result.eager_steps[0].name == "train/update");
      CHECK(result.eager_steps[0].runs == 7);
      CHECK(result.eager_steps[0].share_of_time > 0.0);
      *told = real_file_system()->read(trainer.state().artifact_dir / "steps/train_update.0.json");
    }
    return bits_of(trainer);
  };
  std::vector<std::string> lines;
  std::string told;
  const StateDict expected = run("eager", nullptr, nullptr);
  const StateDict got = run("traced", &lines, &told);
  CHECK(first_difference(expected, got) == "");
  const auto is_refusal = [](const std::string& line) {
    return line.find("ProbeCallback.on_after_backward") != std::string::npos;
  };
  CHECK(std::count_if(lines.begin(), lines.end(), is_refusal) == 1);
  CHECK(told.find("\"mode\": \"eager\"") != std::string::npos);
  CHECK(told.find("ProbeCallback.on_after_backward") != std::string::npos);
  CHECK(told.find("\"share_of_time\": 0.") != std::string::npos);
}

TEST_CASE("a step that reads a flag is replayed, and its report has the guard") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.backend.mode = "traced";
  ProbeCallback::Options hooks;
  hooks.after_backward = [](Trainer&, const Outputs& outputs) {
    CHECK((outputs["loss"] > 0).item<bool>());
  };
  options.callbacks = {use<ProbeCallback>(hooks)};
  options.loop.max_steps = 8;
  Trainer trainer(options, quiet_log());
  CHECK(trainer.fit(tiny_loader("train")).eager_steps.empty());
  const std::string told =
      real_file_system()->read(trainer.state().artifact_dir / "steps/train_update.0.json");
  CHECK(told.find("\"mode\": \"guarded\"") != std::string::npos);
  CHECK(told.find("aten::_local_scalar_dense in ProbeCallback.on_after_backward") !=
        std::string::npos);
  CHECK(told.find("\"answer\": \"true\"") != std::string::npos);
  CHECK(told.find("\"replays\": 6") != std::string::npos);
}

TEST_CASE("more threads than cores are warned of, with both numbers") {
  const WithThreads as_before;
  for (const int more : {0, 1, 62}) {
    const TempDir dir;
    TrainerOptions options = tiny_options(dir / "run");
    options.backend.threads = available_cores() + more;
    std::vector<std::string> lines;
    const Trainer trainer(options, quiet_log(&lines));
    const std::string threads = std::to_string(options.backend.threads) + " is more than the ";
    const auto is_of_threads = [&](const std::string& line) {
      return line.find(threads + std::to_string(available_cores()) + " core") != std::string::npos;
    };
    CHECK(std::count_if(lines.begin(), lines.end(), is_of_threads) == (more > 0 ? 1 : 0));
  }
}

TEST_SUITE_END();
