#include <doctest/doctest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "configs/toml_file.h"
#include "core/file_system.h"
#include "trainer/run_config.h"

using namespace rondo;

namespace {

const std::filesystem::path kSource = RONDO_SOURCE_DIR;

/// The code blocks of a language in a page.
std::vector<std::string> blocks(const std::string& page, const std::string& language) {
  const std::string text = real_file_system()->read(kSource / page);
  const std::string fence = "```" + language + "\n";
  std::vector<std::string> found;
  for (size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at)) {
    at += fence.size();
    const size_t end = text.find("```", at);
    found.push_back(text.substr(at, end - at));
    at = end + 3;
  }
  return found;
}

}  // namespace

TEST_SUITE_BEGIN("docs/readme");

TEST_CASE("the C++ of the README is that of examples which are compiled") {
  const std::vector<std::string> code = blocks("README.md", "cpp");
  REQUIRE(code.size() == 2);
  CHECK(code[0] == real_file_system()->read(kSource / "examples/train_in_code/main.cpp"));
  CHECK(code[1] == real_file_system()->read(kSource / "examples/plugin/grad_norm.h"));
}

TEST_CASE("the TOML of the README is a run without fault") {
  Registries registries;
  register_builtins(registries);
  const std::vector<std::string> configs = blocks("README.md", "toml");
  REQUIRE(configs.size() == 1);
  const RunConfig run = read_run_config(parse_toml(configs[0], "README.md"), registries);
  CHECK(run.fit);
  CHECK(run.validate_all);
}

TEST_CASE("the commands of the README name files that exist") {
  for (const std::string& commands : blocks("README.md", "sh")) {
    const std::regex path(R"((configs/\S+|\./run\.sh))");
    for (std::sregex_iterator at(commands.begin(), commands.end(), path), end; at != end; ++at) {
      CHECK(std::filesystem::exists(kSource / at->str()));
    }
  }
}

TEST_SUITE_END();
