#include "board/run_files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "board/made_runs.h"
#include "core/error.h"
#include "support/temp_dir.h"

TEST_SUITE_BEGIN("board/run_files");

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_CASE("only files inside of the run's directory are found, also through links") {
  const TempDir dir;
  const fs::path run = dir / "run";
  write_text(dir / "secret", "s");
  write_text(dir / "run2/secret", "s");
  write_text(run / "media/a.png", "a");
  fs::create_symlink("media/a.png", run / "inside");
  fs::create_symlink("../secret", run / "outside");
  fs::create_directory_symlink("..", run / "up");
  fs::create_symlink("nowhere", run / "broken");
  REQUIRE(::mkfifo((run / "pipe").c_str(), 0600) == 0);
  CHECK(file_of_run(run, "media/a.png") == fs::canonical(run / "media/a.png"));
  CHECK(file_of_run(run, "inside") == fs::canonical(run / "media/a.png"));
  for (const std::string& path : {std::string("../secret"),
                                  std::string("media/../../secret"),
                                  std::string("../run2/secret"),
                                  (dir / "secret").string(),
                                  std::string("outside"),
                                  std::string("up/secret"),
                                  std::string("broken"),
                                  std::string("missing"),
                                  std::string("media"),
                                  std::string("pipe"),
                                  std::string("."),
                                  std::string(""),
                                  std::string("media/a.png\0x", 13)}) {
    CAPTURE(path);
    CHECK(!file_of_run(run, path));
  }
  CHECK(!file_of_run(dir / "gone", "a"));
}

TEST_CASE("a log is searched without regard to case, and its last lines are shown") {
  const TempDir dir;
  write_text(dir / "run.log", "Loss 1\nother\nloss 2\nLOSS 3\n");
  const FoundLines all = lines_with(dir / "run.log", "", 2);
  CHECK(all.count == 4);
  CHECK(all.last == std::vector<std::string>{"loss 2", "LOSS 3"});
  const FoundLines found = lines_with(dir / "run.log", "lOss", 10);
  CHECK(found.count == 3);
  CHECK(found.last.front() == "Loss 1");
  CHECK(lines_with(dir / "missing", "", 5).count == 0);
}

TEST_CASE("steps are those of the newest start that described any; tables are listed") {
  const TempDir dir;
  write_text(dir / "logs/20260101_1/steps/old.json", "{}");
  write_text(dir / "logs/20260102_1/steps/b.json", "{}");
  write_text(dir / "logs/20260102_1/steps/a.json", "{}");
  write_text(dir / "logs/20260102_1/steps/a.txt", "");
  write_text(dir / "logs/20260103_1/run.log", "");
  write_text(dir / "logs/20260103_1/validate_all.csv", "a,b\n");
  write_text(dir / "validate_all.csv", "a,b\n");
  fs::create_directory_symlink("20260103_1", dir / "logs/latest");
  CHECK(steps_of_run(dir.path()) == std::vector<std::string>{"a", "b"});
  CHECK(newest_steps_folder(dir.path()) == "logs/20260102_1/steps");
  CHECK(tables_of_run(dir.path()) ==
        std::vector<std::string>{"validate_all.csv", "logs/20260103_1/validate_all.csv"});
  CHECK(steps_of_run(dir / "logs").empty());
}

TEST_CASE("a file that is too large or unreadable is an error") {
  const TempDir dir;
  write_text(dir / "large", "");
  fs::resize_file(dir / "large", (uintmax_t{64} << 20) + 1);
  CHECK_THROWS_AS(bytes_of_file(dir / "large"), DataError);
  CHECK_THROWS_AS(bytes_of_file(dir / "missing"), DataError);
  write_text(dir / "empty", "");
  CHECK(bytes_of_file(dir / "empty").empty());
}

TEST_SUITE_END();
