#include <doctest/doctest.h>

#include <filesystem>

#include "docs/play.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("docs/embedding");

TEST_CASE("the game of the page trains while it runs, and ends with a checkpoint") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 5;
  Trainer trainer(options, quiet_log());
  Game game(1'000'000);
  play(trainer, tiny_loader("train"), game);
  CHECK(std::filesystem::exists(dir / "run/latest"));
}

TEST_SUITE_END();
