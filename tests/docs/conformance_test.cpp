#include <doctest/doctest.h>

#include <regex>
#include <string>
#include <vector>

#include "docs/pages.h"

using namespace rondo::test;

TEST_SUITE_BEGIN("docs/conformance");

namespace {

struct Row {
  std::string number;
  std::string state;  ///< of docs/conformance.md; of a list its text
};

/// The rows of a table whose first cell is a number of a list, such as "T71".
std::vector<Row> rows_of(const char* page) {
  static const std::regex row(R"(^\| ([TCP]\d+) \|.* \| (.+) \|$|^\| ([TCP]\d+) \| (.+) \|$)");
  std::vector<Row> found;
  for (const std::string& line : lines_of(read_page(page))) {
    std::smatch match;
    if (std::regex_match(line, match, row)) {
      found.push_back(match[1].matched ? Row{match[1].str(), match[2].str()}
                                       : Row{match[3].str(), match[4].str()});
    }
  }
  return found;
}

/// "T1" to "T<last>".
void add_numbers(const char* letter, int last, std::vector<std::string>& numbers) {
  for (int i = 1; i <= last; ++i) {
    numbers.push_back(letter + std::to_string(i));
  }
}

std::vector<std::string> numbers_of(const std::vector<Row>& rows) {
  std::vector<std::string> numbers;
  for (const Row& row : rows) {
    numbers.push_back(row.number);
  }
  return numbers;
}

}  // namespace

TEST_CASE("the page and the published lists have every number once, in order") {
  std::vector<std::string> cerebras;
  std::vector<std::string> composer;
  std::vector<std::string> pymarlin;
  add_numbers("T", 138, cerebras);
  add_numbers("C", 90, composer);
  add_numbers("P", 40, pymarlin);
  CHECK(numbers_of(rows_of("docs/conformance/cerebras.md")) == cerebras);
  CHECK(numbers_of(rows_of("docs/conformance/composer.md")) == composer);
  CHECK(numbers_of(rows_of("docs/conformance/pymarlin.md")) == pymarlin);
  std::vector<std::string> all = cerebras;
  all.insert(all.end(), composer.begin(), composer.end());
  all.insert(all.end(), pymarlin.begin(), pymarlin.end());
  CHECK(numbers_of(rows_of("docs/conformance.md")) == all);
}

TEST_CASE("each state is known; a test file that a row names has the number") {
  const std::regex known("covered: .+|partly: .+|by types.*|departed: .+|later: .+");
  const std::regex file("`(tests/[^`]+)`");
  for (const Row& row : rows_of("docs/conformance.md")) {
    CAPTURE(row.number);
    CHECK(std::regex_match(row.state, known));
    const bool is_tested = row.state.rfind("covered", 0) == 0 || row.state.rfind("partly", 0) == 0;
    const std::regex number("\\b" + row.number + "\\b");
    int files = 0;
    for (std::sregex_iterator at(row.state.begin(), row.state.end(), file), end;
         is_tested && at != end;
         ++at) {
      CHECK_MESSAGE(std::regex_search(read_page((*at)[1].str()), number), (*at)[1].str());
      ++files;
    }
    CHECK((!is_tested || files > 0));
  }
}

TEST_SUITE_END();
