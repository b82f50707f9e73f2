#include "callbacks/artifact_dir_callback.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "core/file_system.h"
#include "loops/fit_run.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("callbacks/artifact_dir_callback");

TEST_CASE("T85: each loop has a metadata.json from its first batch on") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 5;
  options.loop.eval_frequency = 3;
  options.checkpoint.steps = 4;
  Trainer trainer(options, quiet_log());
  FitRun run(trainer, tiny_loader("train"), {tiny_loader("val", 4)}, {});
  const std::filesystem::path first = trainer.state().artifact_dir / "000_train/metadata.json";
  run.advance();  // begins the stretch
  CHECK_FALSE(std::filesystem::exists(first));
  run.advance();  // its first batch
  CHECK(std::filesystem::exists(first));
  while (run.advance()) {
  }
  const auto metadata = [&](const char* loop) {
    return real_file_system()->read(trainer.state().artifact_dir / loop / "metadata.json");
  };
  CHECK(metadata("000_train") ==
        "{\"stage\": \"train\", \"num_steps\": 3, \"checkpoint_steps\": \"4ba\"}\n");
  CHECK(metadata("001_val") == "{\"stage\": \"validate\", \"num_steps\": 2}\n");
  CHECK(metadata("002_train") ==
        "{\"stage\": \"train\", \"num_steps\": 2, \"checkpoint_steps\": \"4ba\"}\n");
  CHECK(metadata("003_val") == "{\"stage\": \"validate\", \"num_steps\": 2}\n");
}

TEST_SUITE_END();
