#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "cli/json_table.h"
#include "cli/run_here.h"
#include "core/available_cores.h"
#include "core/file_system.h"
#include "support/glyphs_run.h"
#include "support/temp_dir.h"
#include "support/with_threads.h"

TEST_SUITE_BEGIN("cli/plan");

using namespace rondo;
using rondo::test::Answer;
using rondo::test::glyphs_toml;
using rondo::test::number;
using rondo::test::run_here;
using rondo::test::table;
using rondo::test::table_of;
using rondo::test::TempDir;
using rondo::test::WithThreads;

namespace {

std::string write_run(const TempDir& dir) {
  const std::filesystem::path path = dir / "run.toml";
  std::ofstream(path) << glyphs_toml(dir / "run");
  return path.string();
}

double sum_of(const ConfigTable& numbers) {
  double sum = 0.0;
  for (const ConfigEntry& entry : numbers.entries()) {
    sum += number(numbers, entry.key.c_str());
  }
  return sum;
}

}  // namespace

TEST_CASE("a plan says what one of several ranks keeps of the optimizer's state") {
  const TempDir dir;
  const std::string config = write_run(dir);
  const auto bytes = [&](const std::string& ranks) {
    const auto ran = run_here({"plan", config, "--json", "--ranks=" + ranks});
    REQUIRE(ran.code == 0);
    return table(table_of(ran.out), "run");
  };
  const ConfigTable of_two = bytes("2");
  const double whole = number(of_two, "optimizer state");
  CHECK(number(of_two, "shared_optimizer_state") >= whole / 2);
  CHECK(number(of_two, "shared_optimizer_state") <= whole);
  CHECK(bytes("1").find("shared_optimizer_state") == nullptr);
  CHECK(run_here({"plan", config, "--ranks=3000000000"}).code == 2);
}

TEST_CASE("a plan trains nothing that stays, and says whether a limit holds") {
  const TempDir dir;
  const std::string config = write_run(dir);
  CHECK(run_here({"plan", config}).code == 0);
  CHECK(run_here({"plan", config, "--memory-limit=8.5GiB", "--json"}).code == 0);
  CHECK(run_here({"plan", config, "--memory-limit=10KiB"}).code == 1);
  for (const char* size : {"much",
                           "inf",
                           "nan",
                           "1e30GB",
                           "9223372036854775808",
                           "-1",
                           "0",
                           "0x4000000",
                           " 64MB",
                           "64MB "}) {
    CHECK_MESSAGE(run_here({"plan", config, std::string("--memory-limit=") + size}).code == 2,
                  size);
  }
  CHECK(run_here({"plan", config, "trainer.init.backend.mode=eager"}).code == 2);
  CHECK_FALSE(std::filesystem::exists(dir / "run"));
  const Answer shown = run_here({"plan", config, "--json", "trainer.init.backend.on_nan=explain"});
  CHECK(shown.code == 0);
  const ConfigTable plan = table_of(shown.out);
  const ConfigTable& run = table(plan, "run");
  for (const char* key :
       {"inputs", "ahead", "validation", "history", "unplanned", "process", "measured"}) {
    number(run, key);
  }
  CHECK(number(run, "peak") >= number(run, "replays"));
  CHECK(number(run, "process") >= number(run, "peak"));
  CHECK(sum_of(table(plan, "modules")) == number(run, "model"));
  double arenas = 0.0;
  for (const ConfigValue& value : *plan.find("steps")->get_if<ConfigArray>()) {
    const ConfigTable& step = *value.get_if<ConfigTable>();
    CHECK(sum_of(table(step, "by_operator")) == sum_of(table(step, "by_module")));
    CHECK(sum_of(table(step, "by_operator")) <= number(step, "arena"));
    CHECK(sum_of(table(step, "by_operator")) > 0.0);
    arenas += number(step, "arena");
  }
  CHECK(arenas == number(run, "arenas"));
}

TEST_CASE("the interpreter has no plan: the plan executor's is shown, and no timeline") {
  const TempDir dir;
  const std::string config = write_run(dir);
  const std::string interpreter = "trainer.init.backend.executor=interpreter";
  CHECK(run_here({"plan", config, interpreter, "--memory-limit=8000MB"}).code == 0);
  CHECK(run_here({"plan", config, interpreter, "--memory-limit=10KiB"}).code == 1);
  REQUIRE(run_here({"fit", config, interpreter}).code == 0);
  CHECK(run_here({"inspect", (dir / "run").string(), "--timeline", "--replays=4"}).code == 2);
}

TEST_CASE("the timeline of a run is shown anew, and its trace kept with the run") {
  const TempDir dir;
  const std::string config = write_run(dir);
  REQUIRE(run_here({"fit", config}).code == 0);
  const std::filesystem::path steps = dir / "run" / "logs" / "latest" / "steps";
  CHECK(run_here({"inspect", (dir / "run").string(), "--timeline", "--replays=4"}).code == 0);
  const std::string trace = real_file_system()->read(steps / "train_update.0.trace.json");
  for (const char* source : {"forward (mlp.cpp:", "(rule_optimizer.cpp:"}) {
    CHECK_MESSAGE(trace.find(source) != std::string::npos, trace);
  }
  CHECK(run_here({"inspect", (dir / "run").string(), "--timeline", "--replays=0"}).code == 2);
  const std::string graph = "--graph=train_update.0";
  CHECK(run_here({"inspect", (dir / "run").string(), graph}).code == 0);
  CHECK(run_here({"inspect", (dir / "run").string(), graph, "--timeline"}).code == 2);
  CHECK(run_here({"inspect", config, graph}).code == 2);
  CHECK(run_here({"inspect", config, "--timeline"}).code == 2);
}

TEST_CASE("what trains a run anew in another directory does so under the run's own threads") {
  const WithThreads as_before;
  const int threads = available_cores() + 1;  // which no calibration tries
  const TempDir dir;
  const std::string config = write_run(dir);
  REQUIRE(
      run_here({"fit",
                config,
                "trainer.init.backend.threads=\"auto\"",
                "trainer.init.checkpoint.save_final_checkpoint=false"})  // it would tell threads
          .code == 0);
  std::ofstream(dir / "run" / "threads.json") << "{\"threads\": " << threads << "}\n";
  const std::string run_dir = (dir / "run").string();
  SUBCASE("inspect --timeline") {
    CHECK(run_here({"inspect", run_dir, "--timeline", "--replays=4"}).code == 0);
  }
  SUBCASE("debug") {
    CHECK(run_here({"debug", run_dir, "--nan"}).code == 1);  // no NaN
  }
  CHECK(at::get_num_threads() == threads);
}

TEST_SUITE_END();
