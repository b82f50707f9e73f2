#include "callbacks/hooks.h"

#include <doctest/doctest.h>

#include <map>
#include <regex>
#include <string>

#include "docs/pages.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("docs/hooks");

namespace {

/// The rows of the table of docs/hooks.md: "host" or "step" of each hook.
std::map<std::string, std::string> sites_in_table(const std::string& page) {
  static const std::regex row(R"(\n\| `(\w+)` \| (host|step) \|)");
  std::map<std::string, std::string> sites;
  for (std::sregex_iterator at(page.begin(), page.end(), row), end; at != end; ++at) {
    sites[(*at)[1].str()] = (*at)[2].str();
  }
  return sites;
}

}  // namespace

TEST_CASE("the table of the page has every hook, and says where it runs") {
  const std::string page = read_page("docs/hooks.md");
  const std::map<std::string, std::string> sites = sites_in_table(page);
  CHECK(sites.size() == all_hooks().size());
  for (const HookInfo& hook : all_hooks()) {
    CAPTURE(hook.name);
    REQUIRE(sites.count(hook.name) == 1);
    CHECK(sites.at(hook.name) == (hook.site == HookSite::Host ? "host" : "step"));
  }
}

TEST_CASE("the loop of the page shows every hook at its place") {
  const std::string page = read_page("docs/hooks.md");
  for (const HookInfo& hook : all_hooks()) {
    const std::string mark = hook.site == HookSite::Host ? "[H] " : "[S] ";
    CHECK_MESSAGE(page.find(mark + hook.name + "(") != std::string::npos, hook.name);
  }
}

TEST_CASE("the README says how many hooks there are") {
  const std::string count = std::to_string(all_hooks().size()) + " hooks";
  CHECK(read_page("README.md").find(count) != std::string::npos);
}

TEST_SUITE_END();
