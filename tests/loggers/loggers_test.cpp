#include "loggers/loggers.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file_system.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

std::string logged_by(const Factory<Logger>& logger, const char* file) {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loggers = {logger};
  options.loop.max_steps = 2;
  Trainer trainer(options, quiet_log());
  trainer.log_metrics({{"odd \"name\",", std::numeric_limits<double>::infinity()}});
  trainer.fit(tiny_loader("train"), {tiny_loader("val")});
  return real_file_system()->read(dir.path() / "run" / file);
}

bool contains(const std::string& text, const std::string& piece) {
  return text.find(piece) != std::string::npos;
}

}  // namespace

TEST_SUITE_BEGIN("loggers/loggers");

TEST_CASE("JSONL: one object a value; quotes are escaped, what is not finite is null") {
  const std::string text = logged_by(use<JsonlLogger>(), "metrics.jsonl");
  CHECK(contains(text, "{\"step\":0,\"name\":\"odd \\\"name\\\",\",\"value\":null}"));
  CHECK(contains(text, "\"step\":1,\"name\":\"loss\""));
  CHECK(contains(text, "\"name\":\"val/loss\""));
}

TEST_CASE("CSV: a line of names, then one line a value, fields quoted where they must be") {
  const std::string text = logged_by(use<CsvLogger>(), "metrics.csv");
  CHECK(text.rfind("step,name,value\n", 0) == 0);
  CHECK(contains(text, "0,\"odd \"\"name\"\",\",inf\n"));
  CHECK(contains(text, "\n2,val/loss,"));
}

TEST_CASE("TensorBoard: an event file in its directory; a run that logs nothing leaves none") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loggers = {use<TensorBoardLogger>()};
  options.loop.max_steps = 2;
  Trainer trainer(options, quiet_log());
  CHECK_FALSE(std::filesystem::exists(dir.path() / "run/events"));
  trainer.fit(tiny_loader("train"));
  CHECK_FALSE(std::filesystem::is_empty(dir.path() / "run/events"));
}

TEST_CASE("a full disk is told once, and a run goes on without its metrics") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loggers = {use<JsonlLogger>({"/dev/full"})};
  options.loop.max_steps = 60;
  options.loop.eval_frequency = 3;
  options.checkpoint.steps = 4;
  std::vector<std::string> lines;
  Trainer trainer(options, quiet_log(&lines));
  CHECK(trainer.fit(tiny_loader("train"), {tiny_loader("val")}).steps == 60);
  CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
          return contains(line, "/dev/full");
        }) == 1);
}

TEST_CASE("a logger makes the folders of its file") {
  CHECK_FALSE(logged_by(use<JsonlLogger>({"a/b/m.jsonl"}), "a/b/m.jsonl").empty());
  CHECK_FALSE(logged_by(use<CsvLogger>({"a/b/m.csv"}), "a/b/m.csv").empty());
}

TEST_CASE("a file that cannot be written ends a run before its first update") {
  const TempDir dir;
  std::ofstream(dir / "file") << "in the way";
  const std::filesystem::path below = dir / "file/metrics";
  for (const Factory<Logger>& logger : {use<JsonlLogger>({below}),
                                        use<CsvLogger>({below}),
                                        use<TensorBoardLogger>({below}),
                                        use<JsonlLogger>({dir.path()})}) {
    CAPTURE(logger.name());
    TrainerOptions options = tiny_options(dir / "run");
    options.loggers = {logger};
    try {
      const Trainer trainer(options, quiet_log());
      FAIL("the Trainer was made");
    } catch (const HookError&) {
      const std::exception_ptr cause = root_cause(std::current_exception());
      CHECK_THROWS_AS(std::rethrow_exception(cause), IoError);
      CHECK(contains(describe(cause), dir.path().string()));
    }
  }
}

TEST_CASE("what a logger throws names the logger, whatever is thrown") {
  struct Thrower : Logger {
    void log(const Metrics&, int64_t) override { throw 7; }
  };

  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loggers = {use<Thrower>()};
  Trainer trainer(options, quiet_log());
  try {
    trainer.log_metrics({{"x", 1.0}});
    FAIL("nothing was thrown");
  } catch (const HookError&) {
    CHECK(contains(describe(std::current_exception()), "Thrower.log"));
    CHECK(contains(describe(std::current_exception()), "of type int"));
  }
}

TEST_CASE("values can be iterated where they are returned") {
  const TempDir dir;
  Trainer trainer(tiny_options(dir / "run"), quiet_log());
  std::vector<std::string> names;
  for (auto& item : trainer.validate(tiny_loader("val")).items()) {
    names.push_back(item.first);
  }
  CHECK(names == std::vector<std::string>{"val/loss", "val/accuracy"});
  names.clear();
  for (const auto& item : trainer.predict(tiny_loader("val")).items()) {
    names.push_back(item.first);
  }
  CHECK(names == std::vector<std::string>{"loss", "logits"});
}

TEST_SUITE_END();
