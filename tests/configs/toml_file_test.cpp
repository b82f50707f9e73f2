#include "configs/toml_file.h"

#include <doctest/doctest.h>

#include <fstream>

#include "configs/config_values.h"
#include "configs/repeated.h"
#include "core/error.h"
#include "support/temp_dir.h"

using namespace rondo;
using rondo::test::repeated;
using rondo::test::value_at;

namespace {

/// The faults of a text, named "t.toml".
std::vector<Fault> faults_of(const std::string& text) {
  try {
    parse_toml(text, "t.toml");
  } catch (const ConfigError& error) {
    return error.faults;
  }
  return {};
}

/// "line:column" of the only fault; "" when there is none or another number.
std::string place_of_fault(const std::string& text) {
  const std::vector<Fault> faults = faults_of(text);
  if (faults.size() != 1 || faults[0].position.file != "t.toml" || faults[0].message.empty()) {
    return "";
  }
  return std::to_string(faults[0].position.line) + ":" + std::to_string(faults[0].position.column);
}

}  // namespace

TEST_SUITE_BEGIN("configs/toml_file");

TEST_CASE("every kind of value keeps its kind") {
  const ConfigValue root = parse_toml(
      "truth = true\ncount = 3\nrate = 3.0\nname = \"a\"\nlist = [1, \"b\"]\n"
      "inline = { x = 1 }\n[section]\ny = 2\n[[tables]]\nz = 3\n[[tables]]\n",
      "t.toml");
  CHECK(*value_at(root, "truth").get_if<bool>());
  CHECK(*value_at(root, "count").get_if<int64_t>() == 3);
  CHECK(*value_at(root, "rate").get_if<double>() == 3.0);
  CHECK(*value_at(root, "name").get_if<std::string>() == "a");
  CHECK(value_at(root, "list").get_if<ConfigArray>()->size() == 2);
  CHECK(*value_at(value_at(root, "inline"), "x").get_if<int64_t>() == 1);
  CHECK(*value_at(value_at(root, "section"), "y").get_if<int64_t>() == 2);
  CHECK(value_at(root, "tables").get_if<ConfigArray>()->size() == 2);
}

TEST_CASE("keys and values know their line and column, and keys keep the order of the file") {
  const ConfigValue root = parse_toml("z = 1\n[b.c]\n  a = [10,\n 20]\n", "t.toml");
  const auto& entries = root.get_if<ConfigTable>()->entries();
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].key == "z");
  CHECK(entries[0].value.position().column == 5);
  const ConfigEntry& a = *value_at(value_at(root, "b"), "c").get_if<ConfigTable>()->find_entry("a");
  CHECK(a.key_position.file == "t.toml");
  CHECK(a.key_position.line == 3);
  CHECK(a.key_position.column == 3);
  const ConfigValue& twenty = a.value.get_if<ConfigArray>()->at(1);
  CHECK(twenty.position().line == 4);
  CHECK(twenty.position().column == 2);
}

TEST_CASE("what is no TOML is a fault with its place") {
  CHECK(place_of_fault("a = 1\nb = \n") == "2:5");
  CHECK(place_of_fault("a = 1\na = 2\n").substr(0, 2) == "2:");
  CHECK(place_of_fault("x = \"\xff\"").substr(0, 2) == "1:");
  CHECK(place_of_fault("x = 99999999999999999999").substr(0, 2) == "1:");
}

TEST_CASE("dates and times are refused, all of them at once") {
  const std::vector<Fault> faults =
      faults_of("a = 2026-01-02\nb = 10:11:12\nc = [2026-01-02T10:11:12Z]\nd = 1\n");
  REQUIRE(faults.size() == 3);
  CHECK(faults[0].position.line == 1);
  CHECK(faults[0].position.column == 5);
  CHECK(faults[2].position.line == 3);
  CHECK(faults[2].position.column == 6);
}

TEST_CASE("nesting that would exhaust the stack is refused where it begins to be too deep") {
  CHECK(place_of_fault("b = 1\n" + repeated("a.", 100000) + "a = 1") == "2:130");
  CHECK(place_of_fault("[" + repeated("a.", 100000) + "a]") == "1:129");
  CHECK(place_of_fault("x = " + repeated("[", 100000)) == "1:69");
  CHECK(place_of_fault("x = " + repeated("{ a = ", 100000)) == "1:389");
  CHECK(faults_of(repeated("a.", 60) + "a = 1").empty());
}

TEST_CASE("a text beyond what people write is refused unread") {
  CHECK(faults_of("# " + std::string(size_t{1} << 20, 'x')).size() == 1);
  CHECK(faults_of("# " + std::string(size_t{1} << 19, 'x')).empty());
}

TEST_CASE("a file is read under its name; one that is not there is an IoError") {
  const test::TempDir dir;
  std::ofstream(dir / "run.toml") << "a = 1\n";
  const ConfigValue root = read_toml_file(dir / "run.toml");
  CHECK(value_at(root, "a").position().file == (dir / "run.toml").string());
  CHECK_THROWS_AS(read_toml_file(dir / "other.toml"), IoError);
}

TEST_SUITE_END();
