#include <doctest/doctest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "configs/toml_file.h"
#include "core/file_system.h"
#include "docs/pages.h"
#include "trainer/run_config.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// The code of the blocks of a language in the README.
std::vector<std::string> blocks(const std::string& language) {
  std::vector<std::string> found;
  for (const Block& block : blocks_of("README.md")) {
    if (block.language == language) {
      found.push_back(block.text);
    }
  }
  return found;
}

}  // namespace

TEST_SUITE_BEGIN("docs/readme");

TEST_CASE("the C++ of the README is that of examples which are compiled") {
  const std::vector<std::string> code = blocks("cpp");
  REQUIRE(code.size() == 2);
  CHECK(code[0] == real_file_system()->read(kSource / "examples/train_in_code/main.cpp"));
  CHECK(code[1] == real_file_system()->read(kSource / "examples/plugin/grad_norm.h"));
}

TEST_CASE("the TOML of the README is a run without fault") {
  Registries registries;
  register_builtins(registries);
  const std::vector<std::string> configs = blocks("toml");
  REQUIRE(configs.size() == 1);
  const RunConfig run = read_run_config(parse_toml(configs[0], "README.md"), registries);
  CHECK(run.fit);
  CHECK(run.validate_all);
}

TEST_CASE("the commands of the README name files that exist") {
  for (const std::string& commands : blocks("sh")) {
    const std::regex path(R"((configs/\S+|\./run\.sh))");
    for (std::sregex_iterator at(commands.begin(), commands.end(), path), end; at != end; ++at) {
      CHECK(std::filesystem::exists(kSource / at->str()));
    }
  }
}

TEST_SUITE_END();
