#include "record/run_record.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "core/error.h"
#include "core/file_descriptor.h"
#include "record/config_keys.h"
#include "support/temp_dir.h"

TEST_SUITE_BEGIN("record/run_record");

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

namespace {

constexpr const char* kSession =
    R"({"kind":"session","step":0,"time":100,"format":1,"run":"a","version":"0.2.0","updates":40})"
    "\n";

fs::path write(const fs::path& directory, const std::string& text) {
  fs::create_directories(directory);
  std::ofstream(directory / kRecordFile, std::ios::binary) << text;
  return directory;
}

std::string numbers(int step, const std::string& values) {
  return R"({"kind":"numbers","step":)" + std::to_string(step) + R"(,"time":)" +
         std::to_string(100 + step) + R"(,"values":{)" + values + "}}\n";
}

}  // namespace

TEST_CASE(
    "alerts, validations, media and the process of a run are read; a later session drops them") {
  const TempDir dir;
  const std::string lines = std::string(
      R"({"kind":"session","step":0,"time":1,"run":"a","version":"0","host":"h","process":7})"
      "\n"
      R"({"kind":"alert","step":10,"time":2,"level":"warn","text":"loss = 4 > 3"})"
      "\n"
      R"({"kind":"alert","step":20,"time":3,"level":"error","text":"later"})"
      "\n"
      R"({"kind":"validation","step":20,"time":3,"text":"val"})"
      "\n"
      R"({"kind":"image","step":20,"time":3,"name":"digits","file":"media/a.png"})"
      "\n");
  const RunRecord run = read_record(write(dir / "whole", lines));
  REQUIRE(run.alerts.size() == 2);
  CHECK(run.alerts[0].text == "loss = 4 > 3");
  CHECK(run.alerts[1].level == "error");
  REQUIRE(run.validations.size() == 1);
  CHECK(run.validations[0].label == "val");
  REQUIRE(run.media.size() == 1);
  CHECK(run.media[0].file == "media/a.png");
  CHECK(run.process == 7);
  CHECK(run.host == "h");
  const RunRecord resumed =
      read_record(write(dir / "resumed",
                        lines + R"({"kind":"session","step":10,"time":9,"run":"a","version":"0"})"
                                "\n"));
  CHECK(resumed.alerts.size() == 1);
  CHECK(resumed.validations.empty());
  CHECK(resumed.media.empty());
}

TEST_CASE("a record says what the run is, logged, saved, and how it ended") {
  const TempDir dir;
  const RunRecord run = read_record(write(
      dir.path(),
      std::string(kSession) +
          R"({"kind":"config","step":0,"time":100,"text":"[trainer.init]\nseed = 1\nl = [2, {a = \"b\"}]\n"})"
          "\n"
          R"({"kind":"metric","step":10,"time":110,"text":"val/accuracy","better":"higher"})"
          "\n" +
          numbers(10, R"("loss":0.5,"val/accuracy":0.9)") +
          numbers(20, R"("loss":"nan","val/accuracy":0.8)") +
          R"({"kind":"save","step":20,"time":121,"text":"checkpoint_20.pt"})"
          "\n"
          R"({"kind":"end","step":20,"time":122,"status":"stopped","text":"Ctrl-C"})"
          "\n"));
  CHECK(run.name == "a");
  CHECK(run.version == "0.2.0");
  CHECK(run.updates == 40);
  CHECK(run.step == 20);
  CHECK(run.end - run.begin == 22);
  CHECK(run.status == RunStatus::Stopped);
  CHECK(run.reason == "Ctrl-C");
  CHECK(run.config.at("trainer.init.seed") == "1");
  CHECK(run.config.at("trainer.init.l.a") == "b");
  REQUIRE(run.metrics.at("loss").size() == 2);
  CHECK(run.metrics.at("loss")[0].value == 0.5);
  CHECK(std::isnan(run.metrics.at("loss")[1].value));
  REQUIRE(run.saves.size() == 1);
  CHECK(run.saves[0].path == "checkpoint_20.pt");
  REQUIRE(run.best("val/accuracy") != nullptr);
  CHECK(run.best("val/accuracy")->step == 10);
  CHECK(run.best("loss") == nullptr);  // nobody said which values are better
  CHECK(run.damaged_lines == 0);
}

TEST_CASE(
    "keys of lists are named after components and labels, so that one more changes no other") {
  const auto keys = config_keys(R"(
[[trainer]]
[trainer.init]
callbacks = [{ CountParams = {} }, { Alert = { metric = "a" } }, { Alert = { metric = "b" } },
             { LogOptimizerParamGroup = { keys = ["lr", "momentum"] } }, "SpeedMonitor"]
loggers = [{ RecordLogger = false }]
[trainer.fit]
val_dataloader = [{ label = "val", dataset = "Glyphs" }]
sizes = [[1, 2], [3]]
)");
  CHECK(keys == std::map<std::string, std::string>{
                    {"trainer.0.init.callbacks.CountParams", "{}"},
                    {"trainer.0.init.callbacks.Alert.metric", "a"},
                    {"trainer.0.init.callbacks.Alert#2.metric", "b"},
                    {"trainer.0.init.callbacks.LogOptimizerParamGroup.keys", "[lr, momentum]"},
                    {"trainer.0.init.callbacks.SpeedMonitor", "{}"},
                    {"trainer.0.init.loggers.RecordLogger", "false"},
                    {"trainer.0.fit.val_dataloader.val.label", "val"},
                    {"trainer.0.fit.val_dataloader.val.dataset", "Glyphs"},
                    {"trainer.0.fit.sizes.0", "[1, 2]"},
                    {"trainer.0.fit.sizes.1", "[3]"}});
}

TEST_CASE("a record of a later format says so") {
  const TempDir dir;
  const std::string later = R"({"kind":"session","step":0,"time":1,"format":2,"run":"a"})"
                            "\n";
  CHECK(read_record(write(dir / "a", kSession)).format == kRecordFormat);
  CHECK(read_record(write(dir / "b", later)).format == 2);
}

TEST_CASE("a session that continues replaces what it does again") {
  const TempDir dir;
  const RunRecord run =
      read_record(write(dir.path(),
                        std::string(kSession) + numbers(10, R"("loss":5)") +
                            numbers(20, R"("loss":4)") + numbers(30, R"("loss":3,"only/here":1)") +
                            R"({"kind":"session","step":20,"time":200,"run":"a","version":"0.2.0"})"
                            "\n" +
                            numbers(20, R"("val/loss":9)") + numbers(20, R"("val/loss":8)") +
                            numbers(30, R"("loss":2)")));
  CHECK(run.sessions == 2);
  CHECK(run.begin == 100);
  REQUIRE(run.metrics.at("loss").size() == 3);
  CHECK(run.metrics.at("loss")[2].value == 2);
  REQUIRE(run.metrics.at("val/loss").size() == 1);
  CHECK(run.metrics.at("val/loss")[0].value == 8);
  CHECK(run.metrics.count("only/here") == 0);
  CHECK(run.status == RunStatus::Crashed);
}

TEST_CASE("damaged lines are counted, a torn end and unknown kinds are passed over") {
  const TempDir dir;
  const RunRecord run = read_record(
      write(dir.path(),
            std::string(kSession) + "{\"kind\":\"numbers\",\n" +
                R"({"kind":"hologram","step":7,"time":1,"depth":[{"x":[1,2]},null,true]})"
                "\n\x01\xff\n" +
                numbers(10, R"("loss":1)") + R"({"kind":"numbers","step":20,"ti)"));
  CHECK(run.damaged_lines == 2);
  CHECK(run.damaged_line == 2);
  CHECK(run.step == 10);
  CHECK(run.metrics.at("loss").size() == 1);
}

TEST_CASE("every cut and every changed byte of a record is read") {
  const TempDir dir;
  const std::string text = std::string(kSession) + numbers(10, R"("loss":0.5)") +
                           R"({"kind":"end","step":10,"time":122,"status":"done"})"
                           "\n";
  for (size_t i = 0; i < text.size(); ++i) {
    read_record(write(dir.path(), text.substr(0, i)));
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 0x11);
    read_record(write(dir.path(), changed));
  }
}

TEST_CASE("objects inside each other without end are a damaged line") {
  const TempDir dir;
  const std::string deep(100000, '[');
  CHECK(read_record(write(dir.path(), "{\"kind\":\"x\",\"y\":" + deep + "\n")).damaged_lines == 1);
}

TEST_CASE("a run whose file is locked is running") {
  const TempDir dir;
  const fs::path directory = write(dir.path(), kSession);
  const int file = ::open((directory / kRecordFile).c_str(), O_RDONLY);
  REQUIRE(::flock(file, LOCK_EX | LOCK_NB) == 0);
  CHECK(read_record(directory).status == RunStatus::Running);
  ::close(file);
  CHECK(read_record(directory).status == RunStatus::Crashed);
}

TEST_CASE("a directory without a record is refused with what to do") {
  const TempDir dir;
  CHECK_THROWS_WITH_AS(
      read_record(dir.path()), doctest::Contains("there is no record.jsonl"), DataError);
  CHECK_THROWS_AS(read_record(dir.path() / "missing"), DataError);
}

TEST_CASE("runs are found four folders deep, in order, and not inside of runs or behind links") {
  const TempDir dir;
  write(dir.path() / "b", kSession);
  write(dir.path() / "a/x", kSession);
  write(dir.path() / "a/x/inside", kSession);
  write(dir.path() / "1/2/3/4", kSession);
  write(dir.path() / "1/2/3/deep/er", kSession);
  write(dir.path() / ".hidden", kSession);
  fs::create_directory_symlink(dir.path() / "b", dir.path() / "link");
  CHECK(find_runs(dir.path()) ==
        std::vector<fs::path>{dir.path() / "1/2/3/4", dir.path() / "a/x", dir.path() / "b"});
  CHECK(find_runs(dir.path() / "b") == std::vector<fs::path>{dir.path() / "b"});
  CHECK(find_runs(dir.path() / "missing").empty());
}

TEST_CASE("a follower reads what is added, also to a line that was not whole") {
  const TempDir dir;
  const fs::path file =
      write(dir / "a", std::string(kSession) + numbers(1, "\"loss\":4")) / kRecordFile;
  RecordFollower follower(dir / "a");
  CHECK(follower.run().metrics.at("loss").size() == 1);
  const std::string line = numbers(2, "\"loss\":3");
  std::ofstream(file, std::ios::app) << line.substr(0, 10);
  follower.read();
  CHECK(follower.run().metrics.at("loss").size() == 1);
  std::ofstream(file, std::ios::app) << line.substr(10) << "damaged\n";
  follower.read();
  CHECK(follower.run().metrics.at("loss").back().value == 3.0);
  CHECK(follower.run().damaged_lines == 1);
  CHECK(follower.run().damaged_line == 4);
  follower.read();
  CHECK(follower.run().metrics.at("loss").size() == 2);
  CHECK(follower.run().damaged_lines == 1);
}

TEST_CASE("a follower sees a run begin again, and another file in the place of the first") {
  const TempDir dir;
  const fs::path file =
      write(dir / "a", std::string(kSession) + numbers(1, "\"loss\":4")) / kRecordFile;
  RecordFollower follower(file);
  CHECK(follower.run().status == RunStatus::Crashed);
  {
    const rondo::detail::FileDescriptor writer(::open(file.c_str(), O_RDONLY));
    REQUIRE(::flock(writer.get(), LOCK_EX) == 0);
    follower.read();
    CHECK(follower.run().status == RunStatus::Running);
  }
  follower.read();
  CHECK(follower.run().status == RunStatus::Crashed);
  write(dir / "b",
        std::string(kSession) + numbers(1, "\"accuracy\":1") + numbers(2, "\"accuracy\":1"));
  fs::rename(dir / "b/record.jsonl", file);
  follower.read();
  CHECK(follower.run().metrics.count("loss") == 0);
  CHECK(follower.run().metrics.at("accuracy").size() == 2);
  CHECK(follower.run().sessions == 1);
  fs::resize_file(file, 0);
  follower.read();
  CHECK(follower.run().metrics.empty());
  fs::remove(file);
  CHECK_THROWS_AS(follower.read(), DataError);
}

TEST_CASE("a short record is whole at a glance; lines are read by where they begin") {
  const TempDir dir;
  const std::string second = numbers(1, "\"loss\":4");
  const fs::path run = write(dir / "a", kSession + second);
  const auto [record, is_whole] = glance_at_record(run, 1000);
  CHECK(is_whole);
  CHECK(record.metrics.at("loss").size() == 1);
  const auto begin = static_cast<int64_t>(std::string(kSession).size());
  CHECK(record_line(run, begin) + "\n" == second);
  CHECK_THROWS_AS(record_line(run, begin + static_cast<int64_t>(second.size())), DataError);
  CHECK_THROWS_AS(record_line(run, int64_t{1} << 40), DataError);
}

TEST_CASE("positions in the data are read with their update; a later session drops them") {
  const TempDir dir;
  const auto line = [](int step, int samples) {
    return R"({"kind":"numbers","step":)" + std::to_string(step) +
           R"(,"time":1,"epoch":0.5,"samples":)" + std::to_string(samples) +
           R"(,"tokens":9,"values":{"loss":1}})"
           "\n";
  };
  const std::string again = R"({"kind":"session","step":1,"time":100,"run":"a"})"
                            "\n";
  const RunRecord run = read_record(
      write(dir / "a", kSession + line(1, 32) + line(2, 64) + again + line(3, 96) + line(3, 97)));
  REQUIRE(run.positions.size() == 2);
  CHECK(run.positions[0].step == 1);
  CHECK(run.positions[0].samples == 32.0);
  CHECK(run.positions[1].step == 3);
  CHECK(run.positions[1].samples == 97.0);
  CHECK(run.positions[1].epoch == 0.5);
  CHECK(run.positions[1].tokens == 9.0);
}

TEST_SUITE_END();
