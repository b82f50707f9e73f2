// `rondo query` and `rondo alerts` on records.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "cli/run_here.h"
#include "record/run_record.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("cli/query_command");

namespace {

void write_run(const fs::path& directory, double loss, const std::string& more = "") {
  fs::create_directories(directory);
  std::ofstream(directory / kRecordFile)
      << R"({"kind":"session","step":0,"time":10,"run":")" << directory.filename().string()
      << R"(","version":"0.2.0","updates":20})"
      << "\n"
      << R"({"kind":"numbers","step":20,"time":75,"values":{"loss":)" << loss << "}}\n"
      << more;
}

constexpr const char* kAlert =
    R"({"kind":"alert","step":20,"time":75,"level":"warn","text":"loss = 4 > 3"})"
    "\n";

bool has_sqlite() {
  const TempDir dir;
  write_run(dir / "a", 1.0);
  return run_here({"query", (dir / "a").string(), "select 1"}).code == 0;
}

}  // namespace

TEST_CASE("a query runs over the runs of a folder and prints a table or JSON") {
  if (!has_sqlite()) {
    return;
  }
  const TempDir dir;
  write_run(dir / "a", 1.5);
  write_run(dir / "group/b", 1.25);
  const std::string sql = "select run, value from metrics where name = 'loss' order by value";
  const Answer table = run_here({"query", dir.path().string(), sql});
  CHECK(table.code == 0);
  CHECK(table.out == "run      value\ngroup/b   1.25\na          1.5\n");
  CHECK(run_here({"query", (dir / "a").string(), sql, "--json"}).out ==
        "{\"run\":\"a\",\"value\":1.5}\n");
  const std::string file = (dir / "runs.db").string();
  CHECK(run_here({"query", dir.path().string(), "--save", file}).code == 0);
  CHECK(fs::file_size(file) > 0);
}

TEST_CASE("a query without runs is about those here") {
  if (!has_sqlite()) {
    return;
  }
  const TempDir dir;
  write_run(dir / "first", 1.5);
  const fs::path before = fs::current_path();
  fs::current_path(dir.path());
  const Answer answer = run_here({"query", "select run from runs"});
  const Answer saved = run_here({"query", "--save", "runs.db"});
  const Answer missing = run_here({"query", "b"});
  fs::current_path(before);
  CHECK(answer.out == "run\nfirst\n");
  CHECK(saved.code == 0);
  CHECK(missing.code == 2);
}

TEST_CASE("a wrong query is bad usage") {
  const TempDir dir;
  write_run(dir / "a", 1.5);
  const std::string run = (dir / "a").string();
  CHECK(run_here({"query", run, "drop table runs"}).code == 2);
  CHECK(run_here({"query", run}).code == 2);
  CHECK(run_here({"query", "select 1"}).code == 2);
  CHECK(run_here({"query", (dir / "missing").string(), "select 1"}).code == 2);
}

TEST_CASE("alerts are listed, and the code says whether there are any") {
  const TempDir dir;
  write_run(dir / "a", 1.5);
  write_run(dir / "b", 4.0, kAlert);
  const Answer all = run_here({"alerts", dir.path().string()});
  CHECK(all.code == 1);
  CHECK(all.out.find("loss = 4 > 3") != std::string::npos);
  CHECK(all.out.find("\nb  ") != std::string::npos);
  const Answer json = run_here({"alerts", (dir / "b").string(), "--json"});
  CHECK(json.code == 1);
  CHECK(json.out == R"({"run":"b","step":20,"time":75.000,"level":"warn","text":"loss = 4 > 3"})"
                    "\n");
  const Answer none = run_here({"alerts", (dir / "a").string()});
  CHECK(none.code == 0);
  CHECK(none.out.empty());
}

TEST_SUITE_END();
