#include "loggers/text_file.h"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"
#include "loggers/written_text.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("loggers/text_file");

namespace {

bool has_no_c(std::string_view line) {
  return line.find('c') == std::string_view::npos;
}

}  // namespace

TEST_CASE("a line that a crash cut short stays alone") {
  const TempDir dir;
  const fs::path path = dir / "metrics.jsonl";
  std::ofstream(path) << "{\"step\":1}\n{\"st";
  TextFile file;
  file.set_path(path);
  file.append("{\"step\":2}");
  file.flush();
  CHECK(written_text(path) == "{\"step\":1}\n{\"st\n{\"step\":2}\n");
}

TEST_CASE("a file in folders that are not there is made with them, at its first lines") {
  const TempDir dir;
  const fs::path path = dir / "a/b/metrics.jsonl";
  TextFile file;
  file.set_path(path);
  CHECK(file.is_empty());
  CHECK_FALSE(fs::exists(dir / "a"));
  file.append("line");
  CHECK_FALSE(file.is_empty());
  file.flush();
  CHECK(written_text(path) == "line\n");
}

TEST_CASE("what is left is written when the file goes") {
  const TempDir dir;
  {
    TextFile file;
    file.set_path(dir / "metrics.jsonl");
    file.append("line");
  }
  CHECK(written_text(dir / "metrics.jsonl") == "line\n");
}

TEST_CASE("a full disk is told once, however much is appended and flushed") {
  TextFile full;
  full.set_path("/dev/full");
  full.append("lost");
  CHECK_THROWS_AS(full.flush(), IoError);
  for (int i = 0; i < 10000; ++i) {
    full.append("lost, too, and more than any buffer can hold");
    full.flush();
  }
}

TEST_CASE("lines are dropped, a cut one always, and the file goes on") {
  const TempDir dir;
  const fs::path path = dir / "metrics";
  std::ofstream(path) << "a\nb c\nd\nc\ne\nf cut";
  TextFile file;
  file.set_path(path);
  file.append("g c");
  file.keep_lines(has_no_c);
  CHECK(written_text(path) == "a\nd\ne\n");
  file.append("h");
  file.flush();
  CHECK(written_text(path) == "a\nd\ne\nh\n");
}

TEST_CASE("a file of which nothing is dropped is not written again; a link stays a link") {
  const TempDir dir;
  std::ofstream(dir / "metrics") << "a\nb\n";
  fs::create_symlink("metrics", dir / "link");
  const auto time = fs::last_write_time(dir / "metrics") - std::chrono::hours(1);
  fs::last_write_time(dir / "metrics", time);
  TextFile file;
  file.set_path(dir / "link");
  file.keep_lines(has_no_c);
  CHECK(fs::last_write_time(dir / "metrics") == time);
  file.append("c");
  file.keep_lines(has_no_c);
  CHECK(fs::is_symlink(dir / "link"));
  CHECK(written_text(dir / "metrics") == "a\nb\n");
}

TEST_CASE("no lines are dropped from what is no regular file, or is not there") {
  const TempDir dir;
  TextFile absent;
  absent.set_path(dir / "absent");
  CHECK_NOTHROW(absent.keep_lines(has_no_c));
  CHECK_NOTHROW(absent.start_over());
  CHECK_FALSE(fs::exists(dir / "absent"));
  TextFile null;
  null.set_path("/dev/null");
  CHECK_NOTHROW(null.keep_lines(has_no_c));
  CHECK_NOTHROW(null.start_over());
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("starting over moves what was there aside, under the first free number") {
  const TempDir dir;
  std::ofstream(dir / "metrics.csv") << "first\n";
  {
    TextFile file;
    file.set_path(dir / "metrics.csv");
    file.start_over();
    file.append("second");
  }
  CHECK(written_text(dir / "metrics.1.csv") == "first\n");
  CHECK(written_text(dir / "metrics.csv") == "second\n");
  TextFile file;
  file.set_path(dir / "metrics.csv");
  file.append("third");
  file.start_over("heading\n");  // what this process appended stays
  file.append("fourth");
  file.flush();
  CHECK(written_text(dir / "metrics.1.csv") == "first\n");
  CHECK(written_text(dir / "metrics.2.csv") == "second\n");
  CHECK(written_text(dir / "metrics.csv") == "heading\nthird\nfourth\n");
  file.start_over();  // nothing older any more
  CHECK_FALSE(fs::exists(dir / "metrics.3.csv"));
}

TEST_SUITE_END();
