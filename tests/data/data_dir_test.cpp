#include "data/data_dir.h"

#include <doctest/doctest.h>

#include "core/error.h"
#include "data/data_files.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

const DataFile kFile{"Digits", {"a.gz", "a"}, "digits", "the museum of digits"};

}  // namespace

TEST_SUITE_BEGIN("data/data_dir");

TEST_CASE("a file is found in data_dir or in the folder inside it") {
  const ScopedEnvironment none("RONDO_DATA", nullptr);
  const TempDir dir;
  write_file(dir / "digits" / "a", "x");
  CHECK(find_data_file(dir.path(), kFile) == dir / "digits" / "a");
  write_file(dir / "a", "x");
  CHECK(find_data_file(dir.path(), kFile) == dir / "a");
  write_file(dir / "digits" / "a.gz", "x");
  CHECK(find_data_file(dir.path(), kFile) == dir / "digits" / "a.gz");
}

TEST_CASE("RONDO_DATA is used without data_dir, and not with it") {
  const TempDir dir;
  const TempDir other;
  write_file(dir / "a", "x");
  const ScopedEnvironment environment("RONDO_DATA", dir.path().c_str());
  CHECK(find_data_file(std::nullopt, kFile) == dir / "a");
  CHECK_THROWS_AS(find_data_file(other.path(), kFile), DataError);
}

TEST_CASE("an absolute name needs no directory; a directory is no file") {
  const ScopedEnvironment none("RONDO_DATA", nullptr);
  const TempDir dir;
  write_file(dir / "b", "x");
  CHECK(find_data_file(std::nullopt, {"B", {dir / "b"}, "", ""}) == dir / "b");
  CHECK_THROWS_AS(find_data_file(std::nullopt, {"B", {dir.path()}, "", ""}), DataError);
}

TEST_CASE("a missing file: what was looked for, every place, and how to get it") {
  const TempDir dir;
  const auto with_environment = [](const char* value) {
    const ScopedEnvironment environment("RONDO_DATA", value);
    return message_of([] { find_data_file(std::nullopt, kFile); });
  };
  const std::string set = with_environment(dir.path().c_str());
  for (const std::string& fact : {std::string("Digits"),
                                  (dir / "a").string(),
                                  (dir / "digits" / "a").string(),
                                  (dir / "digits" / "a.gz").string(),
                                  std::string("data_dir="),
                                  std::string("RONDO_DATA"),
                                  std::string("the museum of digits")}) {
    CAPTURE(set);
    CHECK(contains(set, fact));
  }
  for (const char* value : {static_cast<const char*>(nullptr), ""}) {
    CHECK(contains(with_environment(value), "a.gz"));
    CHECK(contains(with_environment(value), "RONDO_DATA"));
  }
}

TEST_SUITE_END();
