// The list of public headers, cmake/RondoHeaders.cmake: what `cmake --install` gives users.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

/// More than anybody keeps in mind is no surface; see docs/decisions/025.
constexpr size_t kMost = 80;

const fs::path& source_dir() {
  static const fs::path dir = RONDO_SOURCE_DIR;
  return dir;
}

std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream stream(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::vector<std::string> public_headers() {
  std::vector<std::string> headers;
  for (const std::string& line : lines_of(source_dir() / "cmake/RondoHeaders.cmake")) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos && line[begin] != '#' && ends_with(line, ".h")) {
      headers.push_back(line.substr(begin));
    }
  }
  return headers;
}

/// What the lines of a file include as <rondo/…>, in code and in the code of pages.
std::vector<std::string> included_by(const fs::path& file) {
  const std::string begin = "#include <rondo/";
  std::vector<std::string> found;
  for (const std::string& line : lines_of(file)) {
    if (line.rfind(begin, 0) == 0) {
      found.push_back(line.substr(begin.size(), line.find('>') - begin.size()));
    }
  }
  return found;
}

}  // namespace

TEST_SUITE_BEGIN("architecture/public_headers");

TEST_CASE("each public header exists, is listed once, and is not internal") {
  const std::vector<std::string> headers = public_headers();
  REQUIRE_FALSE(headers.empty());
  CHECK(std::set<std::string>(headers.begin(), headers.end()).size() == headers.size());
  for (const std::string& header : headers) {
    CHECK_MESSAGE(fs::is_regular_file(source_dir() / header), header);
    CHECK_MESSAGE(header.find("internal/") == std::string::npos, header);
  }
}

TEST_CASE("there are at most eighty public headers, beside those for C") {
  const std::vector<std::string> headers = public_headers();
  const auto for_c = std::count_if(headers.begin(), headers.end(), [](const std::string& header) {
    return header.rfind("rondo_", 0) == 0;
  });
  CHECK(headers.size() - static_cast<size_t>(for_c) <= kMost);
}

TEST_CASE("examples and pages include public headers only") {
  std::vector<std::string> headers = public_headers();
  headers.push_back("core/version.h");  // CMake writes it
  const std::set<std::string> known(headers.begin(), headers.end());
  size_t count = 0;
  std::vector<fs::path> files{source_dir() / "README.md"};
  for (const char* folder : {"docs", "examples"}) {
    for (const fs::directory_entry& entry :
         fs::recursive_directory_iterator(source_dir() / folder)) {
      files.push_back(entry.path());
    }
  }
  for (const fs::path& file : files) {
    if (fs::is_regular_file(file)) {
      for (const std::string& header : included_by(file)) {
        CAPTURE(file.string());
        CHECK_MESSAGE(known.count(header) == 1, header);
        ++count;
      }
    }
  }
  CHECK(count > 0);
}

TEST_SUITE_END();
