#include <doctest/doctest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "docs/pages.h"

using namespace rondo::test;

TEST_SUITE_BEGIN("docs/features");

namespace {

struct FeatureRow {
  std::string number;
  std::string state;
  std::string where;
};

std::vector<FeatureRow> rows() {
  static const std::regex row(R"(^\| (F\d+) \| [^|]+ \| ([^|]+) \| ([^|]*)\|$)");
  std::vector<FeatureRow> found;
  for (const std::string& line : lines_of(read_page("docs/features.md"))) {
    std::smatch match;
    if (std::regex_match(line, match, row)) {
      found.push_back({match[1].str(), match[2].str(), match[3].str()});
    } else {
      CHECK_MESSAGE(line.rfind("| F", 0) != 0, line);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("the rows are numbered from F1, without a gap") {
  const std::vector<FeatureRow> all = rows();
  CHECK(all.size() >= 271);
  for (size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i].number == "F" + std::to_string(i + 1));
  }
}

TEST_CASE("each state is known, and says what is missing or different") {
  const std::regex known("works|not yet|partly: .+|differs: .+");
  for (const FeatureRow& row : rows()) {
    CAPTURE(row.number);
    CHECK(std::regex_match(row.state, known));
  }
}

TEST_CASE("what is there has a place, and the files that are named exist") {
  const std::regex file("`([a-z_]+/[A-Za-z0-9_./-]+)`");
  for (const FeatureRow& row : rows()) {
    CAPTURE(row.number);
    CHECK((row.state == "not yet" || row.where.find('`') != std::string::npos));
    for (std::sregex_iterator at(row.where.begin(), row.where.end(), file), end; at != end; ++at) {
      CHECK_MESSAGE(std::filesystem::exists(kSource / (*at)[1].str()), (*at)[1].str());
    }
  }
}

TEST_SUITE_END();
