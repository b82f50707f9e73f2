#include "loggers/text_file.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

/// A pipe with a name. A thread opens it when it is let, and reads until it is closed.
class NamedPipe {
 public:
  explicit NamedPipe(fs::path path) : path_(std::move(path)) {
    REQUIRE(::mkfifo(path_.c_str(), 0600) == 0);
    reader_ = std::thread([this] {
      let_.get_future().wait();
      std::ifstream pipe(path_, std::ios::binary);
      text_.assign(std::istreambuf_iterator<char>(pipe), {});
    });
  }

  NamedPipe(const NamedPipe&) = delete;
  NamedPipe& operator=(const NamedPipe&) = delete;

  ~NamedPipe() {
    if (reader_.joinable()) {
      reader_.join();
    }
  }

  void let_read() { let_.set_value(); }

  /// Everything that was written, once the other end is closed.
  const std::string& text() {
    reader_.join();
    return text_;
  }

 private:
  fs::path path_;
  std::promise<void> let_;
  std::string text_;
  std::thread reader_;
};

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

TEST_CASE("a pipe that nobody reads holds nobody up until the queue is full, which is told once") {
  const TempDir dir;
  NamedPipe pipe(dir / "pipe");
  std::vector<std::string> warnings;
  std::string all;
  {
    TextFile file;
    file.set_path(dir / "pipe", TextLog::to([&](LogLevel, std::string_view message) {
                    warnings.emplace_back(message);
                    if (warnings.size() == 1) {
                      pipe.let_read();
                    }
                  }));
    const auto append = [&](size_t bytes) {
      for (const size_t end = all.size() + bytes; all.size() < end;) {
        const std::string line = fmt::format("{:01000}", all.size());
        file.append(line);
        all += line + "\n";
      }
    };
    append(size_t{7} << 20);
    file.start_flush();
    CHECK(warnings.empty());
    append(size_t{9} << 20);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find((dir / "pipe").string()) != std::string::npos);
    CHECK(warnings[0].find("more slowly than they come") != std::string::npos);
  }
  CHECK(pipe.text() == all);
  CHECK(warnings.size() == 1);
}

TEST_CASE("a line that is made later stands in its place; what its making throws is thrown once") {
  const TempDir dir;
  TextFile file;
  file.set_path(dir / "file");
  file.append("a");
  file.append_later(1, [] { return std::string("b"); });
  file.append_later(1, []() -> std::string { throw DataError("planted"); });
  CHECK_THROWS_WITH_AS(file.flush(), doctest::Contains(": planted"), IoError);
  file.append("c");
  file.flush();
  CHECK(written_text(dir / "file") == "a\nb\nc\n");
}

TEST_CASE("lines that a full disk did not take are counted, each once") {
  TextFile full;
  full.set_path("/dev/full");
  for (int i = 0; i < 5000; ++i) {
    full.append("lost, in the end");
  }
  CHECK(full.lost() == 5000);
  const TempDir dir;
  TextFile file;
  file.set_path(dir / "file");
  file.append("written");
  CHECK(file.lost() == 0);
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
