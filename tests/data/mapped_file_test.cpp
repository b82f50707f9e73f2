#include "data/mapped_file.h"

#include <doctest/doctest.h>

#include <cstring>

#include "core/error.h"
#include "data/data_files.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("data/mapped_file");

TEST_CASE("a mapped file has the bytes of the file, an empty one none") {
  const TempDir dir;
  write_file(dir / "a", "hello");
  const MappedFile file(dir / "a");
  REQUIRE(file.size() == 5);
  CHECK(std::memcmp(file.data(), "hello", 5) == 0);
  write_file(dir / "empty", "");
  CHECK(MappedFile(dir / "empty").size() == 0);
}

TEST_CASE("a file that is not there is an IoError that names it") {
  const TempDir dir;
  CHECK_THROWS_AS(MappedFile(dir / "none"), IoError);
  CHECK(contains(message_of([&] { MappedFile(dir / "none"); }), (dir / "none").string()));
}

TEST_SUITE_END();
