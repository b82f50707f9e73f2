// ctest runs each file's suite by its name: what is outside of a suite, or in one of another name,
// never runs.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

TEST_SUITE_BEGIN("architecture/suites");

namespace fs = std::filesystem;

namespace {

constexpr const char* kEnding = "_test.cpp";

std::string content_of(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<fs::path> test_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(RONDO_SOURCE_DIR "/tests")) {
    const std::string name = entry.path().filename().string();
    if (name.size() > std::string(kEnding).size() &&
        name.compare(name.size() - std::string(kEnding).size(), name.npos, kEnding) == 0) {
      files.push_back(entry.path());
    }
  }
  return files;
}

std::string path_below_tests(const fs::path& file) {
  return file.lexically_relative(RONDO_SOURCE_DIR "/tests").string();
}

/// "core/time" of tests/core/time_test.cpp
std::string suite_of(const fs::path& file) {
  const std::string path = path_below_tests(file);
  return path.substr(0, path.size() - std::string(kEnding).size());
}

}  // namespace

TEST_CASE("every test file is one suite, named after it, from its first case to its end") {
  const std::vector<fs::path> files = test_files();
  REQUIRE(files.size() > 150);
  for (const fs::path& file : files) {
    CAPTURE(file);
    const std::string text = content_of(file);
    const size_t begin = text.find("\nTEST_SUITE_BEGIN(\"" + suite_of(file) + "\");");
    const size_t end = text.find("\nTEST_SUITE_END();");
    const size_t first_case = text.find("\nTEST_CASE");
    const size_t last_case = text.rfind("\nTEST_CASE");
    REQUIRE(begin != text.npos);
    REQUIRE(end != text.npos);
    REQUIRE(first_case != text.npos);
    CHECK(begin < first_case);
    CHECK(last_case < end);
  }
}

TEST_CASE("every test file is built") {
  for (const fs::path& file : test_files()) {
    CAPTURE(file);
    const std::string path = path_below_tests(file);
    const size_t slash = path.find('/');
    const std::string list =
        content_of(fs::path(RONDO_SOURCE_DIR "/tests") / path.substr(0, slash) / "CMakeLists.txt");
    CHECK(list.find("  " + path.substr(slash + 1) + "\n") != list.npos);
  }
}

TEST_SUITE_END();
