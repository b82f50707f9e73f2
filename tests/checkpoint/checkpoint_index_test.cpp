#include "checkpoint/checkpoint_index.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/archives.h"
#include "support/faulty_fs.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("checkpoint/checkpoint_index");

namespace {

CheckpointIndex index_of(const TempDir& dir) {
  return {real_file_system(), dir.path(), CheckpointName()};
}

std::filesystem::path numbered(const TempDir& dir, int step) {
  return dir.path() / ("checkpoint_" + std::to_string(step) + ".pt");
}

std::vector<std::string> names(const std::vector<std::filesystem::path>& paths) {
  std::vector<std::string> names;
  std::transform(paths.begin(), paths.end(), std::back_inserter(names), [](const auto& path) {
    return path.filename().string();
  });
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("T105: lists paths in order, one a line, relative to the run directory") {
  const TempDir dir;
  CheckpointIndex index = index_of(dir);
  CHECK(index.listed().empty());
  CHECK_FALSE(index.newest());
  index.append(dir / "checkpoint_20.pt");
  index.append(dir / "sub/./checkpoint_3.pt");
  index.append(dir / "checkpoint_20.pt");
  CHECK(bytes_of(index.file()) ==
        "checkpoints = [\n  \"checkpoint_20.pt\",\n  \"sub/checkpoint_3.pt\",\n]\n");
  CHECK(index.listed().size() == 2);
  CHECK(index.newest() == dir / "checkpoint_20.pt");
}

TEST_CASE("what is announced is listed from the moment when it is there") {
  const TempDir dir;
  CheckpointIndex index = index_of(dir);
  index.announce(numbered(dir, 1));
  CHECK(index.listed().empty());
  write_atomically(*real_file_system(), numbered(dir, 1), "x");
  CHECK(names(index.listed()) == Names{"checkpoint_1.pt"});
  index.announce(numbered(dir, 2));
  CHECK(names(index.listed()) == Names{"checkpoint_1.pt"});
  index.append(numbered(dir, 2));
  CHECK(bytes_of(index.file()) ==
        "checkpoints = [\n  \"checkpoint_1.pt\",\n  \"checkpoint_2.pt\",\n]\n");
  index.announce(numbered(dir, 3));
  write_atomically(*real_file_system(), numbered(dir, 2), "x");
  CHECK(index.drop_vanished().empty());
  write_atomically(*real_file_system(), numbered(dir, 3), "x");
  CHECK(index.listed().size() == 2);  // the process that announced it counts as dead since
}

TEST_CASE(
    "a run directory can be moved; checkpoints elsewhere are listed with their absolute path") {
  const TempDir dir;
  const TempDir elsewhere;
  std::filesystem::create_directory(dir / "run");
  CheckpointIndex index(real_file_system(), dir / "run", CheckpointName(), elsewhere.path());
  index.append(dir / "run/checkpoint_1.pt");
  index.append(elsewhere / "checkpoint_2.pt");
  std::filesystem::rename(dir / "run", dir / "moved");
  const CheckpointIndex moved(real_file_system(), dir / "moved", CheckpointName());
  CHECK(moved.all() == std::vector{dir / "moved/checkpoint_1.pt", elsewhere / "checkpoint_2.pt"});
}

TEST_CASE(
    "T103, T106: sorted by step as a number, then by suffix; ill-named ones are passed over") {
  const TempDir dir;
  CheckpointIndex index = index_of(dir);
  for (const char* name : {"checkpoint_100.pt",
                           "checkpoint_20_20240506_070809.pt",
                           "checkpoint_20.pt",
                           "model_checkpoint_200.pt",
                           "checkpoint_5.pt"}) {
    index.append(dir / name);
  }
  write_bytes(dir / "checkpoint_300.pt", "not listed");
  CHECK(names(index.all()) == Names{"checkpoint_5.pt",
                                    "checkpoint_20.pt",
                                    "checkpoint_20_20240506_070809.pt",
                                    "checkpoint_100.pt"});
  CHECK(index.newest() == dir / "checkpoint_100.pt");
  CHECK(index.listed().size() == 5);
}

TEST_CASE("T105: entries whose file has vanished are dropped when asked") {
  const TempDir dir;
  CheckpointIndex index = index_of(dir);
  for (const char* name : {"checkpoint_1.pt", "checkpoint_2.pt", "checkpoint_3.pt"}) {
    write_bytes(dir / name, "x");
    index.append(dir / name);
  }
  std::filesystem::remove(dir / "checkpoint_2.pt");
  CHECK(index.listed().size() == 3);
  CHECK(names(index.drop_vanished()) == Names{"checkpoint_2.pt"});
  CHECK(names(index.listed()) == Names{"checkpoint_1.pt", "checkpoint_3.pt"});
  CHECK(index.drop_vanished().empty());
}

TEST_CASE("when all files have vanished the index is left as it is") {
  const TempDir dir;
  CheckpointIndex index = index_of(dir);
  index.append(dir / "checkpoint_1.pt");
  index.append(dir / "checkpoint_2.pt");
  CHECK(index.drop_vanished().empty());
  CHECK(index.listed().size() == 2);
}

TEST_CASE("what cannot be reached is not taken for gone") {
  const TempDir dir;
  const auto files = std::make_shared<FaultyFs>();
  CheckpointIndex index(files, dir.path(), CheckpointName());
  for (const char* name : {"checkpoint_1.pt", "checkpoint_2.pt"}) {
    write_bytes(dir / name, "x");
    index.append(dir / name);
  }
  files->fail_at(2, FaultKind::Error, EACCES);  // after the index: exists, read
  CHECK_THROWS_AS(index.drop_vanished(), IoError);
  CHECK(index.listed().size() == 2);
  const std::string too_long(300, 'x');
  CHECK_THROWS_AS(real_file_system()->exists(dir.path() / too_long), IoError);
  CHECK_FALSE(real_file_system()->exists(dir / "checkpoint_1.pt/x"));
}

TEST_CASE("checkpoints elsewhere that moved are found by their name in the checkpoint directory") {
  const TempDir dir;
  std::filesystem::create_directories(dir / "old");
  std::filesystem::create_directories(dir / "run");
  CheckpointIndex before(real_file_system(), dir / "run", CheckpointName(), dir / "old");
  for (const char* name : {"old/checkpoint_1.pt", "old/checkpoint_2.pt"}) {
    write_bytes(dir / name, "x");
    before.append(dir / name);
  }
  std::filesystem::rename(dir / "old", dir / "new");
  CheckpointIndex after(real_file_system(), dir / "run", CheckpointName(), dir / "new");
  CHECK(after.newest() == dir / "new/checkpoint_2.pt");
  CHECK(before.newest() == dir / "old/checkpoint_2.pt");
  CHECK(after.drop_vanished().empty());
  CHECK(before.newest() == dir / "new/checkpoint_2.pt");
}

TEST_CASE("what is listed under another template's names is resumed from when nothing else is") {
  const TempDir dir;
  CheckpointIndex index = index_of(dir);
  index.append(dir / "run-9.pt");
  index.append(dir / "run-7.pt");
  CHECK(index.all().empty());
  CHECK(index.newest() == dir / "run-7.pt");
  index.append(dir / "checkpoint_1.pt");
  CHECK(names(index.resumable()) == Names{"run-9.pt", "run-7.pt", "checkpoint_1.pt"});
}

TEST_CASE("an entry can be removed") {
  const TempDir dir;
  CheckpointIndex index = index_of(dir);
  index.append(dir / "checkpoint_1.pt");
  CHECK(index.remove(dir / "checkpoint_1.pt"));
  CHECK_FALSE(index.remove(dir / "checkpoint_1.pt"));
  CHECK(index.listed().empty());
}

TEST_CASE("T107: without an index, existing checkpoints are adopted by their base name, in order") {
  const TempDir dir;
  for (const char* name :
       {"checkpoint_100.pt", "checkpoint_20.pt", "checkpoint_x.pt", "notes.txt"}) {
    write_bytes(dir / name, "x");
  }
  CheckpointIndex index = index_of(dir);
  CHECK(names(index.all()) == Names{"checkpoint_20.pt", "checkpoint_100.pt"});
  CHECK_FALSE(std::filesystem::exists(index.file()));
  write_bytes(dir / "checkpoint_120.pt", "x");
  index.append(dir / "checkpoint_120.pt");
  CHECK(names(index.listed()) ==
        Names{"checkpoint_20.pt", "checkpoint_100.pt", "checkpoint_120.pt"});
  CHECK(std::filesystem::exists(index.file()));
}

TEST_CASE("T107: files elsewhere, which other runs may have saved, are not adopted") {
  const TempDir dir;
  std::filesystem::create_directories(dir / "shared");
  std::filesystem::create_directories(dir / "run/files");
  write_bytes(dir / "shared/checkpoint_20.pt", "x");
  write_bytes(dir / "run/files/checkpoint_20.pt", "x");
  const auto listed_in = [&](const char* root) {
    return CheckpointIndex(real_file_system(), dir / "run", CheckpointName(), dir / root).listed();
  };
  CHECK(listed_in("shared").empty());
  CHECK(listed_in("run/files").size() == 1);
}

TEST_CASE("an index that lists nothing adopts nothing") {
  const TempDir dir;
  CheckpointIndex index = index_of(dir);
  index.append(dir / "checkpoint_1.pt");
  index.remove(dir / "checkpoint_1.pt");
  write_bytes(dir / "checkpoint_2.pt", "x");
  CHECK(index.all().empty());
}

TEST_CASE("the file is written only when it changes") {
  const TempDir dir;
  const auto files = std::make_shared<FaultyFs>();
  CheckpointIndex index(files, dir.path(), CheckpointName());
  index.append(dir / "checkpoint_1.pt");
  const auto writes = [&files] {
    return std::count(files->operations().begin(), files->operations().end(), "rename");
  };
  CHECK(writes() == 1);
  index.append(dir / "checkpoint_1.pt");
  index.remove(dir / "checkpoint_9.pt");
  CHECK(writes() == 1);
  write_bytes(dir / "checkpoint_2.pt", "x");
  index.append(dir / "checkpoint_2.pt");
  CHECK(writes() == 2);
  index.drop_vanished();
  CHECK(writes() == 3);
  index.drop_vanished();
  CHECK(writes() == 3);
}

TEST_CASE("paths with quotes, backslashes and control characters survive") {
  const TempDir dir;
  CheckpointIndex index = index_of(dir);
  const auto path = dir /
                    "a\"b\\c\x01\n\x7f"
                    "grün";
  index.append(path);
  CHECK(index.listed() == std::vector{path});
}

TEST_CASE("a file that is no index is an error naming it and the line") {
  const TempDir dir;
  CheckpointIndex index = index_of(dir);
  for (const char* text : {"checkpoints = [\n\"a\"\n",
                           "checkpoints = 3",
                           "checkpoints = [1]",
                           "",
                           "x",
                           "checkpoints = [\"\"]",
                           "checkpoints = [[\"a\"]]"}) {
    write_bytes(index.file(), text);
    CHECK_THROWS_WITH_AS(
        index.all(), doctest::Contains("checkpoints_index.toml:"), CheckpointError);
    CHECK_THROWS_AS(index.append(dir / "checkpoint_1.pt"), CheckpointError);
  }
}

TEST_CASE("T105: threads that append to one index lose nothing") {
  const TempDir dir;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&dir, t] {
      CheckpointIndex index = index_of(dir);
      for (int i = 0; i < 10; ++i) {
        index.append(numbered(dir, 10 * t + i));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(index_of(dir).all().size() == 40);
}

TEST_CASE("T105: processes that append to one index lose nothing") {
  const TempDir dir;
  std::vector<pid_t> children;
  for (int p = 0; p < 3; ++p) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      CheckpointIndex index = index_of(dir);
      for (int i = 0; i < 10; ++i) {
        index.append(numbered(dir, 10 * p + i));
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  CHECK(index_of(dir).all().size() == 30);
}

TEST_SUITE_END();
