#include "core/writable_path.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "support/temp_dir.h"

using namespace rondo;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("core/writable_path");

TEST_CASE("a file can be written where it is, or where folders can be made; nothing is made") {
  const test::TempDir dir;
  std::ofstream(dir / "there") << "text";
  CHECK_NOTHROW(require_writable_file(dir / "there"));
  CHECK_NOTHROW(require_writable_file(dir / "new"));
  CHECK_NOTHROW(require_writable_file(dir / "a/b/c/new"));
  CHECK_NOTHROW(require_writable_folder(dir / "a/b"));
  CHECK_NOTHROW(require_writable_file("/dev/full"));
  CHECK_FALSE(fs::exists(dir / "new"));
  CHECK_FALSE(fs::exists(dir / "a"));
}

TEST_CASE("a file below a file, a folder in place of a file: errors that name both") {
  const test::TempDir dir;
  std::ofstream(dir / "file") << "text";
  CHECK_THROWS_AS(require_writable_file(dir / "file/metrics.csv"), IoError);
  CHECK_THROWS_AS(require_writable_file(dir / "file/deeper/metrics.csv"), IoError);
  CHECK_THROWS_AS(require_writable_folder(dir / "file"), IoError);
  CHECK_THROWS_AS(require_writable_file(dir.path()), IoError);
  try {
    require_writable_file(dir / "file/deeper/metrics.csv");
  } catch (const IoError& error) {
    const std::string text = error.what();
    CHECK(text.find("deeper/metrics.csv") != std::string::npos);
    CHECK(text.find((dir / "file").string() + " is no folder") != std::string::npos);
  }
}

TEST_SUITE_END();
