#include "checkpoint/temporary_files.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/archives.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("checkpoint/temporary_files");

namespace {

std::vector<std::string> names_in(const TempDir& dir) {
  return real_file_system()->list(dir.path());
}

}  // namespace

TEST_CASE("files that a save left behind are removed, others stay") {
  const TempDir dir;
  write_bytes(dir / "checkpoint_1.pt.0a1b2c3d.tmp", "x");
  const std::vector<std::string> others = {".0a1b2c3d.tmp",
                                           "a.tmp",
                                           "checkpoint_1.pt",
                                           "checkpoint_1.pt.0A1B2C3D.tmp",
                                           "checkpoint_1.pt.0a1b2c3.tmp",
                                           "checkpoint_1.pt.0a1b2c3d.tmp.bak",
                                           "checkpoint_1.pt_0a1b2c3d.tmp"};
  for (const std::string& name : others) {
    write_bytes(dir.path() / name, "x");
  }
  const auto removed = remove_stale_temporaries(*real_file_system(), dir.path());
  CHECK(removed == std::vector{dir / "checkpoint_1.pt.0a1b2c3d.tmp"});
  CHECK(names_in(dir) == others);
}

TEST_CASE("a file that is being written is left alone, and removed once its writer is gone") {
  const TempDir dir;
  auto file = real_file_system()->create(dir / "x.pt.00000000.tmp");
  CHECK(remove_stale_temporaries(*real_file_system(), dir.path()).empty());
  file.reset();  // as when the process dies
  CHECK(remove_stale_temporaries(*real_file_system(), dir.path()).size() == 1);
}

TEST_CASE("links and directories of such a name are left alone") {
  const TempDir dir;
  write_bytes(dir / "precious", "x");
  std::filesystem::create_symlink("precious", dir / "x.pt.00000000.tmp");
  std::filesystem::create_directory(dir / "y.pt.00000000.tmp");
  CHECK(remove_stale_temporaries(*real_file_system(), dir.path()).empty());
  CHECK(names_in(dir).size() == 3);
}

TEST_CASE("a directory that is not there has nothing to remove") {
  const TempDir dir;
  CHECK(remove_stale_temporaries(*real_file_system(), dir / "no").empty());
}

TEST_CASE("saves succeed while another process tidies up") {
  const TempDir dir;
  std::atomic<bool> is_done{false};
  std::thread tidy([&] {
    while (!is_done) {
      remove_stale_temporaries(*real_file_system(), dir.path());
    }
  });
  for (int i = 0; i < 100; ++i) {
    CHECK_NOTHROW(write_atomically(*real_file_system(), dir / "x.pt", "bytes"));
  }
  is_done = true;
  tidy.join();
  CHECK(names_in(dir) == std::vector<std::string>{"x.pt"});
}

TEST_SUITE_END();
