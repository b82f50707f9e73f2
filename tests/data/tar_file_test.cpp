#include "data/records/tar_file.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/data_files.h"
#include "data/tar_files.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

std::vector<std::string> names_in(const std::filesystem::path& path) {
  const TarFile archive(path);
  std::vector<std::string> names;
  for (auto member = archive.member_at(0); member; member = archive.member_at(member->next)) {
    names.push_back(member->name);
  }
  return names;
}

}  // namespace

TEST_SUITE_BEGIN("data/tar_file");

TEST_CASE("the files of an archive come in their order, each from where its header stands") {
  const TempDir dir;
  write_file(dir / "a.tar", tar_bytes({{"b.txt", "second"}, {"a/c.txt", std::string(1300, 'x')}}));
  const TarFile archive(dir / "a.tar");
  const auto first = archive.member_at(0);
  REQUIRE(first);
  CHECK(first->name == "b.txt");
  CHECK(archive.content(*first) == "second");
  const auto second = archive.member_at(first->next);
  REQUIRE(second);
  CHECK(second->name == "a/c.txt");
  CHECK(archive.content(*second) == std::string(1300, 'x'));
  CHECK_FALSE(archive.member_at(second->next));
}

TEST_CASE("archives of Python's tarfile are read in each format, long names included") {
  const std::filesystem::path corpus = RONDO_SOURCE_DIR "/tests/fuzz/corpus/tar";
  CHECK(names_in(corpus / "ustar.tar").front() == "a/0000.cls");
  const std::vector<std::string> gnu = names_in(corpus / "gnu.tar");
  CHECK(gnu.size() == 4);
  CHECK(gnu.back().size() == 150 + 8);
  CHECK(names_in(corpus / "pax.tar").back().rfind("löng/löng/", 0) == 0);
}

TEST_CASE("a header that is damaged, and a file that is cut off, are told with their offset") {
  const TempDir dir;
  std::string bytes = tar_bytes({{"a", "1"}, {"b", std::string(2000, 'y')}});
  write_file(dir / "cut.tar", bytes.substr(0, 2048));
  CHECK(contains(message_of([&] { names_in(dir / "cut.tar"); }), "offset 1024"));
  bytes[1024 + 3] = 'x';
  write_file(dir / "wrong.tar", bytes);
  const std::string message = message_of([&] { names_in(dir / "wrong.tar"); });
  CHECK(contains(message, "wrong.tar"));
  CHECK(contains(message, "offset 1024"));
  write_gzip(dir / "a.tar.gz", bytes);
  CHECK(contains(message_of([&] { names_in(dir / "a.tar.gz"); }), "unpack"));
  CHECK_THROWS_AS(TarFile(dir / "none.tar"), IoError);
}

TEST_SUITE_END();
