#include "board/run_index.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "board/made_runs.h"
#include "board/polled_often.h"
#include "core/error.h"
#include "support/temp_dir.h"

TEST_SUITE_BEGIN("board/run_index");

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

namespace {

std::vector<std::string> ids_of(const RunIndex& index) {
  std::vector<std::string> ids;
  for (const auto& run : index.summaries()) {
    ids.push_back(run->id);
  }
  return ids;
}

/// Waits for changes until one of the run makes the fact true; minutes are enough everywhere.
template <class Fact>
bool comes_true(const RunIndex& index, const Fact& fact) {
  uint64_t since = 0;
  for (int i = 0; i < 1000 && !fact(); ++i) {
    since = index.wait_for_change(since, std::chrono::milliseconds(200)).newest;
  }
  return fact();
}

/// Lines of a record that make it long, with the best value in the middle.
std::string many_numbers(int count) {
  std::string text = R"({"kind":"metric","step":0,"time":100,"text":"loss","better":"lower"})"
                     "\n";
  for (int step = 1; step <= count; ++step) {
    text += numbers_line(step, step == count / 2 ? "\"loss\":0.5" : "\"loss\":1");
  }
  return text;
}

}  // namespace

TEST_CASE("runs are found by their directories, those that fit a glob") {
  const TempDir dir;
  write_run(dir / "b", 0.1, 1);
  write_run(dir / "group/a", 0.1, 1);
  CHECK(ids_of(RunIndex(polled_often(dir.path()))) == std::vector<std::string>{"b", "group/a"});
  RunIndexOptions options = polled_often(dir.path());
  options.globs = {"group/*", "c"};
  CHECK(ids_of(RunIndex(options)) == std::vector<std::string>{"group/a"});
  CHECK(ids_of(RunIndex(polled_often(dir / "b"))) == std::vector<std::string>{"."});
  CHECK_THROWS_AS(RunIndex(polled_often(dir / "missing")), UsageError);
}

TEST_CASE("what a run writes is seen, and so are new runs and those that go") {
  const TempDir dir;
  write_text(dir / "a/record.jsonl", session_line("a"));
  RunIndex index(polled_often(dir.path()));
  const uint64_t before = index.newest_change();
  append_text(dir / "a/record.jsonl", numbers_line(3, "\"loss\":4"));
  CHECK(comes_true(index, [&] { return index.summary("a")->newest.count("loss") == 1; }));
  CHECK(index.newest_change() > before);
  CHECK(index.wait_for_change(before, std::chrono::milliseconds(0)).ids ==
        std::vector<std::string>{"a"});
  index.with_record("a", [](const RunRecord& run) { CHECK(run.metrics.at("loss").size() == 1); });
  append_text(dir / "a/record.jsonl", numbers_line(4, "\"loss\":3"));
  index.with_record("a", [](const RunRecord& run) { CHECK(run.metrics.at("loss").size() == 2); });
  write_run(dir / "new", 0.1, 1);
  CHECK(comes_true(index, [&] { return index.summary("new") != nullptr; }));
  fs::remove_all(dir / "new");
  CHECK(comes_true(index, [&] { return index.summary("new") == nullptr; }));
  CHECK_THROWS_AS(index.with_record("new", [](const RunRecord&) {}), DataError);
  CHECK_THROWS_AS(index.stamp("new"), DataError);
}

TEST_CASE("a long record is listed at once by its ends, and whole later") {
  const TempDir dir;
  write_text(dir / "a/record.jsonl",
             session_line("a") + config_line("lr = 1") + many_numbers(1000) + done_line(1000));
  RunIndexOptions options = polled_often(dir.path());
  options.glance_bytes = 2000;
  RunIndex index(options);
  CHECK(comes_true(index, [&] { return !index.summary("a")->is_partial; }));
  const std::string json = index.summary("a")->json;
  CHECK(json.find("\"best\":0.5,\"best_step\":500") != std::string::npos);
  CHECK(json.find("partial") == std::string::npos);
  const auto [ends, is_whole] = glance_at_record(dir / "a", options.glance_bytes);
  CHECK(!is_whole);
  CHECK(ends.status == RunStatus::Done);
  CHECK(ends.config.at("lr") == "1");
  CHECK(ends.step == 1000);
  CHECK(ends.metrics.at("loss").back().step == 1000);
  CHECK(ends.metrics.at("loss").size() < 100);
  CHECK(ends.damaged_lines == 0);
}

TEST_CASE("records beyond the memory are read again when somebody asks") {
  const TempDir dir;
  RunIndexOptions options = polled_often(dir.path());
  options.memory_bytes = 1;
  for (const char* name : {"a", "b", "c"}) {
    write_text(dir / name / "record.jsonl", session_line(name) + many_numbers(50));
  }
  RunIndex index(options);
  for (int round = 0; round < 2; ++round) {
    for (const char* name : {"a", "b", "c"}) {
      index.with_record(name,
                        [](const RunRecord& run) { CHECK(run.metrics.at("loss").size() == 50); });
    }
  }
}

TEST_CASE("waits end when the index is closed, and numbers of an earlier server mean everything") {
  const TempDir dir;
  write_run(dir / "a", 0.1, 1);
  RunIndex index(polled_often(dir.path()));
  CHECK(index.wait_for_change(1U << 30, std::chrono::milliseconds(0)).ids ==
        std::vector<std::string>{"a"});
  index.close();
  CHECK(index.wait_for_change(index.newest_change(), std::chrono::hours(1)).ids.empty());
}

TEST_CASE("a record that cannot be read hides no other run") {
  const TempDir dir;
  write_run(dir / "a", 0.1, 1);
  write_text(dir / "b/record.jsonl", std::string(100000, '\0'));
  write_text(dir / "c/record.jsonl", "");
  RunIndex index(polled_often(dir.path()));
  CHECK(ids_of(index) == std::vector<std::string>{"a", "b", "c"});
}

TEST_SUITE_END();
