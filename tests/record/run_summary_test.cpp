#include "record/run_summary.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "core/error.h"
#include "support/temp_dir.h"

TEST_SUITE_BEGIN("record/run_summary");

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

namespace {

constexpr const char* kRecord =
    R"({"kind":"session","step":0,"time":100.25,"run":"a \"b\"","version":"0.2.0","format":3,"updates":40,"host":"h","process":7})"
    "\n"
    R"({"kind":"config","time":100.5,"text":"[trainer.init]\nseed = 3\nmodel = { name = \"Mlp\" }\n"})"
    "\n"
    R"({"kind":"metric","text":"val/accuracy","better":"higher"})"
    "\n"
    "no JSON\n"
    R"({"kind":"numbers","step":10,"time":110.125,"samples":640,"values":{"loss":0.1,"val/accuracy":0.9}})"
    "\n"
    R"({"kind":"numbers","step":20,"time":120,"values":{"loss":"nan","val/accuracy":0.7}})"
    "\n"
    R"({"kind":"alert","step":20,"time":120.5,"level":"warn","text":"val/loss is \"3\" > 2"})"
    "\n"
    R"({"kind":"save","step":20,"time":121,"text":"checkpoint_20.pt"})"
    "\n"
    R"({"kind":"end","step":20,"time":122,"status":"stopped","text":"a stop"})"
    "\n";

fs::path write_run(const fs::path& directory, const std::string& text) {
  fs::create_directories(directory);
  std::ofstream(directory / kRecordFile, std::ios::binary) << text;
  return directory;
}

/// What a table shows of a run.
void check_same(const RunRecord& a, const RunRecord& b) {
  CHECK(a.directory == b.directory);
  CHECK(a.name == b.name);
  CHECK(a.version == b.version);
  CHECK(a.begin == b.begin);
  CHECK(a.end == b.end);
  CHECK(a.step == b.step);
  CHECK(a.updates == b.updates);
  CHECK(a.sessions == b.sessions);
  CHECK(a.format == b.format);
  CHECK(to_string(a.status) == std::string(to_string(b.status)));
  CHECK(a.reason == b.reason);
  CHECK(a.process == b.process);
  CHECK(a.host == b.host);
  CHECK(a.config == b.config);
  CHECK(a.damaged_lines == b.damaged_lines);
  CHECK(a.damaged_line == b.damaged_line);
  CHECK(a.higher_is_better == b.higher_is_better);
  REQUIRE(a.alerts.size() == 1);
  REQUIRE(b.alerts.size() == 1);
  CHECK(a.alerts[0].step == b.alerts[0].step);
  CHECK(a.alerts[0].time == b.alerts[0].time);
  CHECK(a.alerts[0].level == b.alerts[0].level);
  CHECK(a.alerts[0].text == b.alerts[0].text);
  REQUIRE(a.metrics.size() == b.metrics.size());
  for (const auto& [name, points] : a.metrics) {
    const RecordPoint& last = points.back();
    const RecordPoint& other = b.metrics.at(name).back();
    CHECK(last.step == other.step);
    CHECK((last.value == other.value || (std::isnan(last.value) && std::isnan(other.value))));
    REQUIRE((a.best(name) == nullptr) == (b.best(name) == nullptr));
    if (a.best(name) != nullptr) {
      CHECK(a.best(name)->step == b.best(name)->step);
      CHECK(a.best(name)->value == b.best(name)->value);
    }
  }
}

}  // namespace

TEST_CASE("a summary has what a table of runs shows") {
  const TempDir dir;
  RunRecord run = read_record(write_run(dir / "run", kRecord));
  RunRecord summary = from_summary(to_summary(run));
  summary.directory = run.directory;
  check_same(summary, run);
  CHECK(summary.best("val/accuracy")->step == 10);
  run.metrics["loss"].back().value = -std::numeric_limits<double>::infinity();
  CHECK(from_summary(to_summary(run)).metrics.at("loss").back().value ==
        -std::numeric_limits<double>::infinity());
  for (const char* text : {"", "{}", "{\"form\":4}", "[]", "{\"form\":3,\"metrics\":{\"a\":[]}}"}) {
    CHECK_THROWS_AS(from_summary(text), DataError);
  }
}

TEST_CASE("summaries come from the index until the record changes, and are the same") {
  const TempDir dir;
  const fs::path index = dir / "cache/rondo/runs.db";
  const fs::path run = write_run(dir / "run", kRecord);
  for (int time = 0; time < 3; ++time) {
    RunSummaries summaries(index);
    check_same(summaries.read(run), read_record(run));
  }
  std::ofstream(run / kRecordFile, std::ios::app)
      << R"({"kind":"session","step":20,"time":200,"run":"a","version":"0.3.0"})"
      << "\n";
  for (int time = 0; time < 2; ++time) {
    RunSummaries summaries(index);
    check_same(summaries.read(run), read_record(run));
  }
  CHECK(RunSummaries(index).read(run).version == "0.3.0");
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(run)) {
    ++files;
  }
  CHECK(files == 1);  // never beside the run
}

TEST_CASE("an index is used: a record with the same facts is not read again") {
  const TempDir dir;
  SummaryIndex(dir / "probe.db").add({"/x", 1, 2, 3}, "text");
  SummaryIndex probe(dir / "probe.db");
  if (!probe.find({"/x", 1, 2, 3})) {
    MESSAGE("skipped: built without SQLite");
    return;
  }
  CHECK(*probe.find({"/x", 1, 2, 3}) == "text");
  CHECK_FALSE(probe.find({"/x", 1, 2, 4}));
  CHECK_FALSE(probe.find({"/y", 1, 2, 3}));
  const fs::path run = write_run(dir / "run", kRecord);
  { RunSummaries(dir / "runs.db").read(run); }
  const auto written = fs::last_write_time(run / kRecordFile);
  std::string other = kRecord;  // as long
  other.replace(other.find("0.2.0"), 5, "9.9.9");
  std::fstream(run / kRecordFile, std::ios::in | std::ios::out | std::ios::binary) << other;
  fs::last_write_time(run / kRecordFile, written);
  CHECK(RunSummaries(dir / "runs.db").read(run).version == "0.2.0");
}

TEST_CASE("an index that is damaged, or cannot be made, costs time and nothing else") {
  const TempDir dir;
  const fs::path run = write_run(dir / "run", kRecord);
  const fs::path index = dir / "runs.db";
  std::ofstream(index) << std::string(8192, 'x');
  for (int time = 0; time < 2; ++time) {
    check_same(RunSummaries(index).read(run), read_record(run));
  }
  std::ofstream(dir / "file") << "x";
  check_same(RunSummaries(dir / "file/runs.db").read(run), read_record(run));
  check_same(RunSummaries(fs::path()).read(run), read_record(run));
  CHECK_THROWS_AS(RunSummaries(index).read(dir / "none"), DataError);
}

TEST_SUITE_END();
