// `rondo validate_all` over the checkpoints of a small run: its options and exit codes.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "cli/run_here.h"
#include "core/file_system.h"
#include "support/process.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("cli/validate_all_command");

namespace {

/// A run with checkpoints at 2, 4, 6 and 8.
struct Run {
  TempDir dir;
  std::string config = (dir / "run.toml").string();

  Run() {
    std::ofstream(config) << fmt::format(R"([trainer.init]
model_dir  = "{}/run"
seed       = 1
model      = {{ name = "Mlp", sizes = [784, 10] }}
loop       = {{ max_steps = 8 }}
checkpoint = {{ steps = 2 }}
[trainer.init.optimizer.SGD]
lr = 0.1
[trainer.fit]
train_dataloader = {{ dataset = "Glyphs", size = 16, batch_size = 4 }}
[trainer.validate_all]
val_dataloaders = [{{ label = "val", dataset = "Glyphs", size = 16, split = "val", batch_size = 4 }}]
)",
                                         dir.path().string());
    REQUIRE(run_here({"fit", config}).code == 0);
  }

  fs::path checkpoint(int64_t step) const {
    return dir.path() / fmt::format("run/checkpoint_{}.pt", step);
  }

  /// Lets another checkpoint appear, as a run does that is going on.
  void add(int64_t step) const {
    const fs::path index = dir / "run/checkpoints_index.toml";
    const fs::path path = checkpoint(step);
    write_atomically(*real_file_system(), path, real_file_system()->read(checkpoint(8)));
    std::string text = real_file_system()->read(index);
    text.insert(text.rfind(']'), fmt::format("\"{}\",\n", path.filename().string()));
    write_atomically(*real_file_system(), index, text);
  }

  void damage(int64_t step) const {
    fs::resize_file(checkpoint(step), fs::file_size(checkpoint(step)) - 10);
  }

  Answer validate(std::vector<std::string> arguments = {}) const {
    arguments.insert(arguments.begin(), {"validate_all", config, "--json"});
    return run_here(std::move(arguments));
  }

  /// Rows that were evaluated so far, in all calls.
  int64_t evaluated() const {
    const std::string rows = real_file_system()->read(dir / "run/validate_all.jsonl");
    return std::count(rows.begin(), rows.end(), '\n');
  }
};

/// The updates of the rows in an answer.
std::vector<int64_t> steps_of(const Answer& answer) {
  const std::regex step("\"step\": *([0-9]+)");
  std::vector<int64_t> steps;
  for (std::sregex_iterator found(answer.out.begin(), answer.out.end(), step), end; found != end;
       ++found) {
    steps.push_back(std::stoll((*found)[1]));
  }
  return steps;
}

using Steps = std::vector<int64_t>;

/// The rows alone: seconds and directories differ from call to call.
std::string rows_of(const Answer& answer) {
  return answer.out.substr(std::min(answer.out.find("\"rows\""), answer.out.size()));
}

}  // namespace

TEST_CASE("--since and --every choose checkpoints by their update") {
  const Run run;
  CHECK(steps_of(run.validate({"--since=4"})) == Steps{4, 6, 8});
  CHECK(steps_of(run.validate({"--every=4"})) == Steps{4, 8});
  CHECK(steps_of(run.validate({"--since=5", "--every=4"})) == Steps{8});
  CHECK(run.evaluated() == 3);
  CHECK(run.validate({"--every=0"}).code == 2);
  CHECK(run.validate({"--since=-1"}).code == 2);
}

TEST_CASE("a second call evaluates what is new, with --force everything") {
  const Run run;
  const Answer first = run.validate();
  CHECK(first.code == 0);
  CHECK(steps_of(first) == Steps{2, 4, 6, 8});
  CHECK(run.evaluated() == 4);
  const Answer again = run.validate();
  CHECK(rows_of(again) == rows_of(first));
  CHECK(run.evaluated() == 4);
  const Answer forced = run.validate({"--force"});
  CHECK(rows_of(forced) == rows_of(first));
  CHECK(run.evaluated() == 8);
}

TEST_CASE("with --jobs processes evaluate each checkpoint once, and the table is the same") {
  const Run run;
  const Answer alone = run.validate();
  fs::remove(run.dir / "run/validate_all.jsonl");
  const Answer together = run.validate({"--jobs=3"});
  CHECK(together.code == 0);
  CHECK(rows_of(together) == rows_of(alone));
  CHECK(run.evaluated() == 4);
  CHECK(rows_of(run.validate({"--jobs=2", "--force"})) == rows_of(alone));
  CHECK(run.evaluated() == 8);
  CHECK(run.validate({"--jobs=2", "--watch"}).code == 2);
}

TEST_CASE(
    "with --jobs a checkpoint that cannot be read is reported, and the others are evaluated") {
  const Run run;
  run.damage(4);
  const Answer answer = run.validate({"--jobs=2"});
  CHECK(answer.code == 3);
  CHECK(steps_of(answer) == Steps{2, 6, 8});
  CHECK(run.evaluated() == 3);
}

TEST_CASE("rows that were found with other data are found anew") {
  const Run run;
  const char* outer = std::getenv("RONDO_DATA");
  const std::string before = outer != nullptr ? outer : "";
  run.validate();
  ::setenv("RONDO_DATA", run.dir.path().c_str(), 1);
  run.validate();
  CHECK(run.evaluated() == 8);
  outer != nullptr ? ::setenv("RONDO_DATA", before.c_str(), 1) : ::unsetenv("RONDO_DATA");
}

TEST_CASE("--json says of the last row what fit says of its end") {
  const Answer answer = Run().validate();
  for (const char* key : {"\"steps\": 8",
                          "\"seconds\"",
                          "\"steps_per_s\": null",
                          "\"val/accuracy\"",
                          "\"artifact_dir\"",
                          "checkpoint_8.pt"}) {
    CAPTURE(key);
    CHECK(answer.out.find(key) < answer.out.find("\"rows\""));
  }
  CHECK(std::count(answer.out.begin(), answer.out.end(), '\n') == 1);
}

TEST_CASE("checkpoints that cannot be read are left out: exit code 3, and 1 when none is left") {
  const Run run;
  run.damage(4);
  const Answer some = run.validate();
  CHECK(some.code == 3);
  CHECK(steps_of(some) == Steps{2, 6, 8});
  for (const int64_t step : {2, 6, 8}) {
    run.damage(step);
  }
  CHECK(run.validate({"--force"}).code == 1);
}

TEST_CASE("--watch evaluates checkpoints that appear, until it is stopped") {
  const Run run;
  Process process({RONDO_LAUNCHER, "validate_all", run.config, "--watch", "--since=8"},
                  run.dir / "out");
  REQUIRE(process.wait_for_output("checkpoint_8.pt"));
  for (const int64_t step : {10, 12}) {
    run.add(step);
    REQUIRE(process.wait_for_output(fmt::format("checkpoint_{}.pt", step)));
  }
  CHECK(run.evaluated() >= 2);  // 8 and 10, before 12 was loaded
  process.send(SIGTERM);
  CHECK(process.wait() == 128 + SIGTERM);
}

TEST_SUITE_END();
