// Every block of code in the pages of the root, of docs/ and of the examples.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "configs/toml_file.h"
#include "core/file_system.h"
#include "docs/overlay.h"
#include "docs/pages.h"
#include "trainer/run_config.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

namespace {

/// All blocks of these languages.
std::vector<Block> all_blocks(const std::set<std::string>& languages) {
  std::vector<Block> found;
  for (const fs::path& page : pages_with_code()) {
    for (Block& block : blocks_of(page)) {
      if (languages.count(block.language) > 0) {
        found.push_back(std::move(block));
      }
    }
  }
  return found;
}

/// Programs with rondo's command line, as the pages call them.
bool is_rondo(const std::string& program) {
  const std::string name = fs::path(program).filename();
  return name == "rondo" || name == "own_program" || program == "./run.sh" || program == "run.sh";
}

/// A text without what is empty or stands before its lines: a block may be the inside of a
/// function.
std::string without_margin(const std::string& text) {
  std::string kept;
  for (const std::string& line : lines_of(text)) {
    const size_t first = line.find_first_not_of(' ');
    kept += first == std::string::npos ? "" : line.substr(first) + "\n";
  }
  return kept;
}

/// The sources of the tree, all of which are compiled.
std::vector<std::string> compiled_sources() {
  std::vector<std::string> sources;
  for (const fs::path& file : files_of_tree()) {
    const std::string suffix = file.extension();
    if (suffix == ".cpp" || suffix == ".h" || suffix == ".c") {
      sources.push_back(without_margin(read_page(file)));
    }
  }
  return sources;
}

bool stands_in(const std::string& text, const std::vector<std::string>& sources) {
  return std::any_of(sources.begin(), sources.end(), [&](const std::string& source) {
    return source.find(text) != std::string::npos;
  });
}

}  // namespace

TEST_SUITE_BEGIN("docs/code_blocks");

TEST_CASE("every block names its language, one that is checked here or plain text") {
  const std::set<std::string> known = {"c", "cmake", "cpp", "sh", "text", "toml"};
  size_t count = 0;
  for (const fs::path& page : pages_with_code()) {
    for (const Block& block : blocks_of(page)) {
      CAPTURE(block.page);
      CAPTURE(block.line);
      CHECK(known.count(block.language) == 1);
      ++count;
    }
  }
  CHECK(count > 15);
}

TEST_CASE("the TOML is a run without fault, alone or laid over the quickstart") {
  Registries registries;
  register_builtins(registries);
  const std::vector<Block> configs = all_blocks({"toml"});
  CHECK(configs.size() >= 3);
  for (const Block& block : configs) {
    CAPTURE(block.page);
    CAPTURE(block.line);
    const ConfigValue part = parse_toml(block.text, block.page);
    ConfigValue whole = read_toml_file(kSource / "configs/recipes/quickstart.toml");
    overlay(*whole.get_if<ConfigTable>(), *part.get_if<ConfigTable>());
    const auto has = [&](const char* table) { return block.text.find(table) != std::string::npos; };
    const bool is_whole = has("[trainer.fit]") && has("[trainer.init");
    try {
      read_run_config(is_whole ? part : whole, registries);
    } catch (const std::exception& error) {
      CHECK_MESSAGE(says_library_is_missing(error.what()), error.what());
    }
  }
}

TEST_CASE("the commands are understood, and the run files that they name are there") {
  size_t count = 0;
  for (const Block& block : all_blocks({"sh"})) {
    for (const std::string& line : lines_of(block.text)) {
      const std::vector<std::string> words = words_of_command(line);
      if (words.empty() || !is_rondo(words[0]) || words.at(1) == "test") {
        continue;
      }
      CAPTURE(block.page);
      CAPTURE(line);
      CHECK(refusal(words) == "");
      for (const std::string& word : words) {
        const bool is_ours = word.rfind("configs/", 0) == 0 || word.rfind("examples/", 0) == 0;
        CHECK((!is_ours || fs::exists(kSource / word)));
      }
      ++count;
    }
  }
  CHECK(count > 15);
}

TEST_CASE("the CMake stands in the project that is built against the installed package") {
  const std::string project =
      without_margin(real_file_system()->read(kSource / "tests/consumer/CMakeLists.txt"));
  const std::vector<Block> blocks = all_blocks({"cmake"});
  CHECK(blocks.size() >= 1);
  for (const Block& block : blocks) {
    CAPTURE(block.page);
    CHECK(stands_in(without_margin(block.text), {project}));
  }
}

TEST_CASE("the C and C++ stands in sources that are compiled") {
  const std::vector<std::string> sources = compiled_sources();
  const std::vector<Block> blocks = all_blocks({"c", "cpp"});
  CHECK(blocks.size() >= 4);
  for (const Block& block : blocks) {
    CAPTURE(block.page);
    CAPTURE(block.line);
    CHECK(stands_in(without_margin(block.text), sources));
  }
}

TEST_SUITE_END();
