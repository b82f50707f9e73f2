#include "cli/json_table.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <regex>

#include "configs/toml_file.h"

namespace rondo::test {

ConfigTable table_of(const std::string& json) {
  const std::string toml = "line = " + std::regex_replace(json, std::regex("\": "), "\" = ");
  const ConfigValue read = parse_toml(toml, "standard output");
  REQUIRE(read.get_if<ConfigTable>() != nullptr);
  return table(*read.get_if<ConfigTable>(), "line");
}

const ConfigTable& table(const ConfigTable& in, const char* key) {
  CAPTURE(std::string(key));
  REQUIRE(in.find(key) != nullptr);
  REQUIRE(in.find(key)->get_if<ConfigTable>() != nullptr);
  return *in.find(key)->get_if<ConfigTable>();
}

double number(const ConfigTable& in, const char* key) {
  CAPTURE(std::string(key));
  const ConfigValue* const value = in.find(key);
  REQUIRE(value != nullptr);
  const auto* const whole = value->get_if<int64_t>();
  const auto* const broken = value->get_if<double>();
  REQUIRE((whole != nullptr || broken != nullptr));
  return whole != nullptr ? static_cast<double>(*whole) : *broken;
}

}  // namespace rondo::test
