// What `rondo fit --json` writes to standard output, as a script reads it.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cli/json_table.h"
#include "support/process.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("cli/json_line");

namespace {

/// Standard output alone of a fit of 20 updates of the quickstart, run in `dir`.
std::string quickstart_output(const TempDir& dir) {
  const std::string config = std::string(RONDO_SOURCE_DIR) + "/configs/recipes/quickstart.toml";
  Process process({"/bin/sh",
                   "-c",
                   "exec \"$@\" 2> /dev/null",
                   "sh",
                   RONDO_LAUNCHER,
                   "fit",
                   config,
                   "--json",
                   "-o",
                   (dir / "run").string(),
                   "trainer.init.loop.max_steps=20",
                   "trainer.init.loop.eval_frequency=10",
                   "trainer.fit.train_dataloader.size=640"},
                  dir / "out");
  CHECK(process.wait() == 0);
  std::ifstream stream(dir / "out");
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string text(const ConfigTable& table, const char* key) {
  CAPTURE(std::string(key));
  REQUIRE(table.find(key) != nullptr);
  REQUIRE(table.find(key)->get_if<std::string>() != nullptr);
  return *table.find(key)->get_if<std::string>();
}

}  // namespace

TEST_CASE("fit --json writes one line to standard output, its result, and nothing else") {
  const TempDir dir;
  const std::string out = quickstart_output(dir);
  REQUIRE_FALSE(out.empty());
  CHECK(out.find('\n') == out.size() - 1);
  const ConfigTable result = table_of(out);
  CHECK(number(result, "steps") == 20);
  CHECK(number(result, "seconds") > 0.0);
  CHECK(number(result, "steps_per_s") > 0.0);
  CHECK(fs::is_directory(text(result, "artifact_dir")));
  CHECK(fs::equivalent(text(result, "last_checkpoint"), dir / "run/checkpoint_20.pt"));
  const ConfigTable& metrics = table(result, "metrics");
  CHECK(number(metrics, "loss") > 0.0);
  CHECK(number(metrics, "val/loss") > 0.0);
  CHECK(number(metrics, "val/accuracy") <= 1.0);
}

TEST_CASE("a run that was done already answers --json in the same way") {
  const TempDir dir;
  quickstart_output(dir);
  const std::string out = quickstart_output(dir);
  REQUIRE_FALSE(out.empty());
  CHECK(out.find('\n') == out.size() - 1);
  const ConfigTable result = table_of(out);
  CHECK(number(result, "steps") == 20);
  CHECK(number(result, "steps_now") == 0);
  CHECK(fs::equivalent(text(result, "last_checkpoint"), dir / "run/checkpoint_20.pt"));
}

TEST_SUITE_END();
