#include <doctest/doctest.h>

#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "docs/pages.h"

using namespace rondo::test;

TEST_SUITE_BEGIN("docs/contributing");

TEST_CASE("the stages of the page are those of .ci/run, in its order") {
  const std::string gate = read_page(".ci/run");
  std::smatch list;
  REQUIRE(std::regex_search(gate, list, std::regex("all_stages=\"([a-z0-9 ]+)\"")));
  std::istringstream words(list[1].str());
  std::vector<std::string> stages;
  for (std::string stage; words >> stage;) {
    stages.push_back(stage);
  }

  const std::string page = read_page("CONTRIBUTING.md");
  const std::regex row(R"(\n\| `([a-z0-9]+)` \|)");
  std::vector<std::string> described;
  for (std::sregex_iterator at(page.begin(), page.end(), row), end; at != end; ++at) {
    described.push_back((*at)[1].str());
  }
  CHECK(described == stages);
}

TEST_SUITE_END();
