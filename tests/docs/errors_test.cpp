#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "core/file_system.h"
#include "docs/pages.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("docs/errors");

namespace {

/// The first cells of the table of errors: what is between their backticks.
std::vector<std::string> texts_of_errors() {
  std::istringstream page(real_file_system()->read(kSource / "docs/tracing.md"));
  std::vector<std::string> texts;
  bool is_inside = false;
  for (std::string line; std::getline(page, line);) {
    is_inside = line.rfind("| the error says", 0) == 0 || (is_inside && line.rfind('|', 0) == 0);
    if (is_inside && line.rfind("| `", 0) == 0) {
      texts.push_back(line.substr(3, line.find('`', 3) - 3));
    }
  }
  return texts;
}

/// The sources of the backends and of tracing, with strings that go on in the next line in one
/// piece.
std::string sources_of_backends() {
  std::string all;
  for (const char* folder : {"backends", "tracing"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kSource / folder)) {
      if (entry.path().extension() == ".cpp") {
        all += real_file_system()->read(entry.path());
      }
    }
  }
  return std::regex_replace(all, std::regex("\"\\n *\""), "");
}

}  // namespace

TEST_CASE("the errors of docs/tracing.md say what the page says that they say") {
  const std::string sources = sources_of_backends();
  const std::vector<std::string> texts = texts_of_errors();
  CHECK(texts.size() > 15);
  for (const std::string& text : texts) {
    CHECK_MESSAGE(sources.find(text) != std::string::npos, text);
  }
}

TEST_SUITE_END();
