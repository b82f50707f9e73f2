#include "loggers/loggers.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"
#include "core/file_system.h"
#include "loggers/text_file.h"
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

TEST_SUITE_END();

TEST_CASE("a line that a crash cut short stays alone") {
  const TempDir dir;
  const std::filesystem::path path = dir / "metrics.jsonl";
  std::ofstream(path) << "{\"step\":1}\n{\"st";
  TextFile file;
  file.set_path(path);
  file.append("{\"step\":2}");
  file.flush();
  CHECK(real_file_system()->read(path) == "{\"step\":1}\n{\"st\n{\"step\":2}\n");
}

TEST_CASE("a full disk is told once, and a run goes on without its metrics") {
  TextFile full;
  full.set_path("/dev/full");
  full.append("lost");
  CHECK_THROWS_AS(full.flush(), IoError);
  full.append("lost");
  CHECK_NOTHROW(full.flush());

  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.loggers = {use<JsonlLogger>({"/dev/full"})};
  options.loop.max_steps = 2;
  std::string warnings;
  Trainer trainer(options, TextLog::to([&](LogLevel level, std::string_view message) {
                    if (level == LogLevel::Warning) {
                      warnings += message;
                    }
                  }));
  CHECK(trainer.fit(tiny_loader("train")).steps == 2);
  CHECK(contains(warnings, "/dev/full"));
}
