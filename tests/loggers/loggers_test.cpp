#include "loggers/loggers.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <torch/types.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <future>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/file_system.h"
#include "core/media.h"
#include "support/probe_callback.h"
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
  options.loggers = {use<RecordLogger>(), use<JsonlLogger>({"/dev/full"})};
  options.loop.max_steps = 60;
  options.loop.eval_frequency = 3;
  options.checkpoint.steps = 4;
  std::vector<std::string> lines;
  Trainer trainer(options, quiet_log(&lines));
  CHECK(trainer.fit(tiny_loader("train"), {tiny_loader("val")}).steps == 60);
  const std::string summary = real_file_system()->read(dir / "run/logs/latest/summary.md");
  CHECK(contains(summary, " entries by JsonlLogger.\n"));
  CHECK_FALSE(contains(summary, "by RecordLogger"));
  CHECK(contains(lines.back(), "not written by the end: "));
  CHECK(contains(lines.back(), " entries by JsonlLogger"));
  CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
          return contains(line, "/dev/full");
        }) == 1);
}

TEST_CASE("a fit trains on while nobody reads the pipe that a logger writes; nothing is lost") {
  const TempDir dir;
  const std::filesystem::path pipe = dir / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::promise<void> trained;
  std::string text;
  std::thread reader([&, future = trained.get_future()] {
    future.wait();
    std::ifstream file(pipe, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(file), {});
  });
  {
    ProbeCallback::Options probe;
    probe.train_batch_end = [&](Trainer& trainer) {
      trainer.log_metrics({{std::string(10000, 'x'), 1.0}});  // more than a pipe holds, in all
      if (trainer.state().global_step() == 24) {
        trained.set_value();  // the save that follows waits
      }
    };
    TrainerOptions options = tiny_options(dir / "run");
    options.loop.max_steps = 24;
    options.loop.eval_frequency = 12;
    options.checkpoint.steps = 0;
    options.loggers = {use<JsonlLogger>({pipe})};
    options.callbacks = {use<ProbeCallback>(probe)};
    Trainer(options, quiet_log()).fit(tiny_loader("train"), {tiny_loader("val")});
  }
  reader.join();
  CHECK(contains(text, "{\"step\":24,\"name\":\"val/loss\""));
  for (int update = 1; update <= 24; ++update) {
    CHECK(contains(text, "{\"step\":" + std::to_string(update) + ",\"name\":\"xxx"));
  }
}

TEST_CASE("a picture that cannot be written is told, and the run goes on") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  std::filesystem::create_directories(dir / "run");
  std::ofstream(dir / "run/media") << "in the way";
  ProbeCallback::Options probe;
  probe.train_batch_end = [](Trainer& trainer) {
    trainer.log_media({"noise", picture_of(torch::rand({64, 64}))});
  };
  options.callbacks = {use<ProbeCallback>(probe)};
  options.loggers = {use<RecordLogger>()};
  options.loop.max_steps = 3;
  std::vector<std::string> lines;
  Trainer trainer(options, quiet_log(&lines));
  CHECK(trainer.fit(tiny_loader("train")).steps == 3);
  CHECK(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return contains(line, "run/media") && contains(line, "the run continues");
  }));
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
