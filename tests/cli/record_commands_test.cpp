// `rondo runs`, `plot` and `diff` on records of two runs.

#include "cli/record_commands.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/run_here.h"
#include "cli/text_table.h"
#include "record/run_record.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("cli/record_commands");

namespace {

void write_run(const fs::path& directory, const char* lr, double loss, const char* end) {
  fs::create_directories(directory);
  std::ofstream record(directory / kRecordFile);
  record << R"({"kind":"session","step":0,"time":10,"run":")" << directory.filename().string()
         << R"(","version":"0.2.0","updates":20})"
         << "\n"
         << R"({"kind":"config","step":0,"time":10,"text":"[optimizer]\nlr = )" << lr << R"("})"
         << "\n"
         << R"({"kind":"metric","step":10,"time":20,"text":"val/accuracy","better":"higher"})"
         << "\n"
         << R"({"kind":"numbers","step":10,"time":20,"values":{"loss":2,"val/accuracy":0.9}})"
         << "\n"
         << R"({"kind":"numbers","step":20,"time":75,"values":{"loss":)" << loss
         << R"(,"val/accuracy":0.8}})"
         << "\n"
         << end;
}

constexpr const char* kDone = "{\"kind\":\"end\",\"step\":20,\"time\":75,\"status\":\"done\"}\n";

/// What a command says on standard error, and its code.
Answer told_by(const std::vector<std::string>& arguments) {
  std::ostringstream caught;
  std::streambuf* const before = std::cerr.rdbuf(caught.rdbuf());
  const Answer answer = run_here(arguments);
  std::cerr.rdbuf(before);
  return {answer.code, caught.str()};
}

/// Two runs, a and group/b.
void write_runs(const TempDir& dir) {
  write_run(dir / "a", "0.1", 1.5, kDone);
  write_run(dir / "group/b", "0.01", 1.25, "");
}

}  // namespace

TEST_CASE("runs are listed with status, results and the keys in which they differ") {
  const TempDir dir;
  write_runs(dir);
  const Answer answer = run_here({"runs", dir.path().string()});
  CHECK(answer.code == 0);
  CHECK(answer.out ==
        "run      status   updates     time  loss  val/accuracy    lr\n"
        "a        done       20/20  0:01:05   1.5       0.9 @10   0.1\n"
        "group/b  crashed    20/20  0:01:05  1.25       0.9 @10  0.01\n");
}

TEST_CASE("runs are sorted by a metric and chosen by status") {
  const TempDir dir;
  write_runs(dir);
  const std::string by_loss =
      run_here({"runs", dir.path().string(), "--sort", "loss", "--metric", "loss"}).out;
  CHECK(by_loss.find("group/b") < by_loss.find("\na "));
  const std::string done = run_here({"runs", dir.path().string(), "--status", "done"}).out;
  CHECK(done.find("group/b") == std::string::npos);
  CHECK(run_here({"runs", dir.path().string(), "--status", "dead"}).code == 2);
  CHECK(run_here({"runs", (dir / "missing").string()}).code == 2);
}

TEST_CASE("a metric that no run has is bad usage of runs, with the names that there are") {
  const TempDir dir;
  write_runs(dir);
  for (const char* option : {"--sort", "--metric"}) {
    CAPTURE(std::string(option));
    const Answer answer = told_by({"runs", dir.path().string(), option, "val/acuracy"});
    CHECK(answer.code == 2);
    CHECK(answer.out.find("did you mean \"val/accuracy\"?") != std::string::npos);
  }
  CHECK(run_here({"runs", dir.path().string(), "--metric", "val/*", "--metric", "zzz"}).code == 2);
  const TempDir empty;
  CHECK(run_here({"runs", empty.path().string(), "--sort", "nope"}).code == 0);
}

TEST_CASE("what a record holds cannot steer the terminal") {
  const TempDir dir;
  const std::string evil = R"(\u001b]0;title\u0007\u001b[2Jloss\u009b31m)";
  fs::create_directories(dir / "run");
  std::ofstream(dir / "run" / kRecordFile)
      << R"({"kind":"session","step":0,"time":10,"run":")" << evil << R"(","version":")" << evil
      << "\"}\n"
      << R"({"kind":"metric","step":1,"time":11,"text":")" << evil << R"(","better":"lower"})"
      << "\n"
      << R"({"kind":"numbers","step":1,"time":11,"values":{")" << evil << R"(":2}})"
      << "\n"
      << R"({"kind":"alert","step":1,"time":12,"level":"warn","text":")" << evil << "\"}\n"
      << R"({"kind":"end","step":1,"time":12,"status":"failed","text":")" << evil << "\"}\n";
  const std::string root = dir.path().string();
  const std::string run = (dir / "run").string();
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"runs", root, "--metric", "*"},
        {"alerts", root},
        {"plot", run, "--metric", "*"},
        {"diff", run, run}}) {
    CAPTURE(command[0]);
    const std::string out = run_here(command).out;
    CHECK(out.find("?]0;title??[2Jloss?31m") != std::string::npos);
    CHECK(out.find_first_of("\x1b\x07") == std::string::npos);
    CHECK(out.find("\xC2\x9B") == std::string::npos);
  }
}

TEST_CASE("a record of a later format is told") {
  const TempDir dir;
  write_runs(dir);
  std::ofstream(dir / "a" / kRecordFile, std::ios::app)
      << R"({"kind":"session","step":20,"time":80,"format":2,"run":"a","version":"9"})"
      << "\n";
  const std::string a = (dir / "a").string();
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"runs", dir.path().string()}, {"plot", a}, {"diff", a, a}}) {
    CHECK(told_by(command).out.find("written in format 2 by rondo 9") != std::string::npos);
  }
}

TEST_CASE("runs --json prints an object a run") {
  const TempDir dir;
  write_run(dir / "a\"b", "1", 1, kDone);
  const Answer answer = run_here({"runs", dir.path().string(), "--json"});
  CHECK(answer.out.find(R"({"name":"a\"b",)") == 0);
  CHECK(answer.out.find(R"("val/accuracy":{"last":0.8,"step":20,"best":0.9,"best_step":10})") !=
        std::string::npos);
  CHECK(answer.out.back() == '\n');
}

TEST_CASE("plot draws the runs over each other, in the terminal or into a file") {
  const TempDir dir;
  write_runs(dir);
  const std::string a = (dir / "a").string();
  const std::string b = (dir / "group/b").string();
  const Answer drawn = run_here({"plot", a, b, "--metric", "val/*"});
  CHECK(drawn.code == 0);
  CHECK(drawn.out.rfind("val/accuracy\n", 0) == 0);
  CHECK(drawn.out.find("- a 0.8") != std::string::npos);
  CHECK(drawn.out.find("- b 0.8") != std::string::npos);
  CHECK(drawn.out.find("loss") == std::string::npos);

  const std::string file = (dir / "loss.svg").string();
  CHECK(run_here({"plot", a, b, "-o", file}).code == 0);
  std::ifstream stream(file);
  const std::string svg{std::istreambuf_iterator<char>(stream), {}};
  CHECK(svg.find("</svg>") != std::string::npos);
  CHECK(run_here({"plot", a, "--metric", "nothing"}).code == 2);
  CHECK(run_here({"plot", (dir / "missing").string()}).code == 1);
}

TEST_CASE("diff tells keys, results and the first update at which a metric differs") {
  const TempDir dir;
  write_runs(dir);
  const std::string a = (dir / "a").string();
  const Answer answer = run_here({"diff", a, (dir / "group/b").string()});
  CHECK(answer.code == 1);
  CHECK(answer.out.find("optimizer.lr  0.1      0.01\n") != std::string::npos);
  CHECK(answer.out.find("differs from update 20 on") != std::string::npos);
  CHECK(answer.out.find("the same") != std::string::npos);
  CHECK(run_here({"diff", a, a}).code == 0);
  CHECK(run_here({"diff", a}).code == 2);
}

TEST_CASE("diff has a row a confusion matrix") {
  const TempDir dir;
  write_runs(dir);
  const auto add_counts = [&](const char* run, int hits) {
    std::ofstream(dir / run / kRecordFile, std::ios::app)
        << R"({"kind":"numbers","step":20,"time":75,"values":{"val/confusion/0/0":)" << hits
        << R"(,"val/confusion/0/1":2,"val/confusion/1/0":3,"val/confusion/1/1":4}})"
        << "\n";
  };
  add_counts("a", 7);
  add_counts("group/b", 8);
  const std::string out = run_here({"diff", (dir / "a").string(), (dir / "group/b").string()}).out;
  CHECK(out.find("confusion/0") == std::string::npos);
  const size_t row = out.find("\nval/confusion ");
  REQUIRE(row != std::string::npos);
  CHECK(out.find("differs from update 20 on", row) < out.find('\n', row + 1));
}

TEST_CASE("board exports the runs that are chosen; wrong folders, hosts and ports are told") {
  const TempDir dir;
  write_runs(dir);
  const std::string root = dir.path().string();
  const std::string file = (dir / "out.html").string();
  CHECK(run_here({"board", root, "--run", "group/*", "--export", file}).code == 0);
  std::ifstream stream(file);
  const std::string page{std::istreambuf_iterator<char>(stream), {}};
  CHECK(page.find("/api/run?id=group%2Fb") != std::string::npos);
  CHECK(page.find("/api/run?id=a\"") == std::string::npos);
  CHECK(run_here({"board", root, "--export", (dir / "missing/out.html").string()}).code == 2);
  CHECK(run_here({"board", (dir / "missing").string()}).code == 2);
  CHECK(run_here({"board", root, "--host", "203.0.113.1", "--port", "0"}).code == 2);
  CHECK(run_here({"board", root, "--port", "70000"}).code == 2);
}

TEST_CASE("lines of a table are cut where the terminal ends") {
  CHECK(text_table({{"name", "value"}, {"é", "10"}}, 7) == "name  \u2026\né     \u2026\n");
  CHECK(text_table({{"name"}, {"é"}}, 4) == "name\né\n");
}

TEST_CASE("columns of a table are as wide as their widest cell, counted in characters") {
  CHECK(text_table({{"name", "n"}, {"é", "10"}, {"plain", "9"}}) ==
        "name    n\n"
        "é      10\n"
        "plain   9\n");
}

TEST_SUITE_END();
