#include "callbacks/core/artifact_dir_callback.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/file_system.h"
#include "loops/fit_run.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "support/with_threads.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("callbacks/core/artifact_dir_callback");

TEST_CASE("T85: each loop has a metadata.json from its first batch on") {
  const WithThreads as_before;
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.backend.threads = 2;
  options.loop.max_steps = 5;
  options.loop.eval_frequency = 3;
  options.checkpoint.steps = 4;
  Trainer trainer(options, quiet_log());
  FitRun run(trainer, tiny_loader("train"), {tiny_loader("val", 4)}, {});
  const std::filesystem::path first = trainer.state().artifact_dir / "000_train/metadata.json";
  run.advance();  // begins the stage
  CHECK_FALSE(std::filesystem::exists(first));
  run.advance();  // its first batch
  CHECK(std::filesystem::exists(first));
  while (run.advance()) {
  }
  const auto metadata = [&](const char* loop) {
    return real_file_system()->read(trainer.state().artifact_dir / loop / "metadata.json");
  };
  CHECK(
      metadata("000_train") ==
      "{\"stage\": \"train\", \"threads\": 2, \"num_steps\": 3, \"checkpoint_steps\": \"4ba\"}\n");
  CHECK(metadata("001_val") == "{\"stage\": \"validate\", \"threads\": 2, \"num_steps\": 2}\n");
  CHECK(
      metadata("002_train") ==
      "{\"stage\": \"train\", \"threads\": 2, \"num_steps\": 2, \"checkpoint_steps\": \"4ba\"}\n");
  CHECK(metadata("003_val") == "{\"stage\": \"validate\", \"threads\": 2, \"num_steps\": 2}\n");
}

TEST_CASE("a run does not end because what only tells of it cannot be written") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.backend.mode = "traced";
  options.loop.max_steps = 5;
  options.loop.eval_frequency = 2;
  options.checkpoint.steps = 5;
  std::vector<std::string> lines;
  Trainer trainer(options, quiet_log(&lines));
  std::filesystem::remove_all(trainer.state().artifact_dir);
  std::ofstream(trainer.state().artifact_dir) << "in the way";
  CHECK(trainer.fit(tiny_loader("train"), {tiny_loader("val")}).steps == 5);
  CHECK(std::filesystem::exists(dir / "run/checkpoint_5.pt"));
  for (const char* file : {"metadata.json", "train_update.0.json"}) {
    CHECK(std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(file) != std::string::npos || line.find("steps") != std::string::npos;
    }));
  }
}

TEST_CASE("the resolved config of a fit tells the seed that was drawn, also when the run resumes") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.config_text = "plugins = []\n\n[trainer.init]\nmodel_dir = \"run\"\n";
  options.seed.reset();
  options.loop.max_steps = 2;
  options.checkpoint.steps = 2;
  const auto config = [&] {
    return real_file_system()->read(dir / "run/logs/latest/trainer_params.toml");
  };
  std::string with_seed;
  {
    Trainer trainer(options, quiet_log());
    CHECK(config() == options.config_text);
    trainer.fit(tiny_loader("train"));
    with_seed = "plugins = []\n\n[trainer.init]\nseed = " + std::to_string(trainer.state().seed) +
                "\nmodel_dir = \"run\"\n";
    CHECK(config() == with_seed);
  }
  options.loop.max_steps = 4;
  Trainer(options, quiet_log()).fit(tiny_loader("train"));
  CHECK(config() == with_seed);
  SUBCASE("a config that gives one stays as it is") {
    options.seed = 3;
    Trainer(options, quiet_log()).fit(tiny_loader("train"));
    CHECK(config() == options.config_text);
  }
  SUBCASE("so does what is no config of a run") {
    options.config_text = "a = 1\n";
    Trainer(options, quiet_log()).fit(tiny_loader("train"));
    CHECK(config() == options.config_text);
  }
}

TEST_SUITE_END();
