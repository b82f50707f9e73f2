#include "callbacks/hooks.h"

#include <doctest/doctest.h>

#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

TEST_SUITE_BEGIN("callbacks/hooks");

TEST_CASE("the hook table and the methods of Callback are the same, in the same order") {
  std::ifstream file(RONDO_SOURCE_DIR "/callbacks/callback.h");
  std::stringstream text;
  text << file.rdbuf();
  const std::string header = text.str();
  const std::regex declaration(R"(virtual void (\w+)\(\s*Trainer&)");
  std::vector<std::string> methods;
  for (std::sregex_iterator at(header.begin(), header.end(), declaration), end; at != end; ++at) {
    methods.push_back((*at)[1]);
  }
  std::vector<std::string> table;
  for (const rondo::HookInfo& hook : rondo::all_hooks()) {
    table.emplace_back(hook.name);
  }
  CHECK(methods.size() > 30);
  CHECK(table == methods);
}

TEST_SUITE_END();
