// The commands of pages that are read with a terminal beside, in the order of the page.

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "core/file_system.h"
#include "data/data_files.h"
#include "docs/pages.h"
#include "support/python.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

namespace {

/// The file that the line above a block names: "1. Write `run.toml`:". "" for other blocks.
std::string file_of(const Block& block) {
  static const std::regex name("`([a-z_]+\\.toml)`.*:$");
  const std::vector<std::string> lines = lines_of(read_page(block.page));
  for (auto i = static_cast<size_t>(block.line) - 1; i-- > 0;) {
    std::smatch match;
    if (!lines[i].empty()) {
      return std::regex_search(lines[i], match, name) ? match[1].str() : "";
    }
  }
  return "";
}

/// "# code 1" behind a command says how it ends; others end well.
int expected_code(const std::string& command) {
  static const std::regex code("# code ([0-9]+)");
  std::smatch match;
  return std::regex_search(command, match, code) ? std::stoi(match[1].str()) : 0;
}

/// A folder in which a reader works, with `rondo` and `python3` where the shell finds them.
class Desk {
 public:
  Desk() {
    fs::create_directories(dir_ / "bin");
    fs::create_directories(dir_ / "work");
    fs::create_symlink(RONDO_LAUNCHER, dir_ / "bin/rondo");
  }

  void put_python(const std::string& python) {
    write_file(dir_ / "bin/python3", "#!/bin/sh\nexec " + python + " \"$@\"\n");
    fs::permissions(dir_ / "bin/python3", fs::perms::owner_all);
  }

  /// Does what a page says: writes its files, and runs its commands.
  void follow(const char* page) {
    for (const Block& block : blocks_of(page)) {
      const std::string file = block.language == "toml" ? file_of(block) : "";
      if (!file.empty()) {
        write_file(dir_ / "work" / file, block.text);
      }
      for (const std::string& line :
           block.language == "sh" ? lines_of(block.text) : std::vector<std::string>{}) {
        run(line, page);
      }
    }
  }

 private:
  void run(const std::string& line, const char* page) {
    const fs::path output = dir_ / "output";
    const std::string script = "cd '" + (dir_ / "work").string() + "' && PATH='" +
                               (dir_ / "bin").string() + "':\"$PATH\"\n" + line + "\n";
    write_file(dir_ / "script", script);
    const int status = std::system(
        ("bash '" + (dir_ / "script").string() + "' > '" + output.string() + "' 2>&1").c_str());
    const std::string said = real_file_system()->read(output);
    INFO(page << ": " << line << '\n' << said);
    CHECK(WIFEXITED(status));
    if (says_library_is_missing(said)) {
      MESSAGE("skipped: an optional library is missing");
      return;
    }
    CHECK(WEXITSTATUS(status) == expected_code(line));
  }

  TempDir dir_;
};

}  // namespace

TEST_SUITE_BEGIN("docs/tutorials");

TEST_CASE("the commands of the first run, and of pages that go on with it, end as they say") {
  Desk desk;
  desk.follow("docs/first_run.md");
  desk.follow("docs/debugging.md");
  desk.follow("docs/performance.md");
  desk.follow("docs/remote_runs.md");
}

TEST_CASE("the commands that fine-tune a checkpoint from Python end as they say") {
  if (skips_without("torch")) {
    return;
  }
  Desk desk;
  desk.put_python(python_with("torch"));
  desk.follow("docs/fine_tuning.md");
}

TEST_SUITE_END();
