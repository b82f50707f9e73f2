#include "record/config_keys.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <sstream>

namespace rondo {

namespace {

using Keys = std::map<std::string, std::string>;

void add(const std::string& path, const toml::node& node, Keys& keys) {
  if (const toml::table* table = node.as_table()) {
    for (const auto& [key, value] : *table) {
      add(fmt::format("{}{}{}", path, path.empty() ? "" : ".", key.str()), value, keys);
    }
  } else if (const toml::array* array = node.as_array()) {
    for (size_t i = 0; i < array->size(); ++i) {
      add(fmt::format("{}.{}", path, i), *array->get(i), keys);
    }
  } else {
    std::ostringstream text;
    node.visit([&](const auto& value) {
      if constexpr (toml::is_string<decltype(value)> || toml::is_floating_point<decltype(value)>) {
        text << fmt::format("{}", value.get());  // TOML's own form has 17 digits
      } else if constexpr (toml::is_value<decltype(value)>) {
        text << value;
      }
    });
    keys[path] = text.str();
  }
}

}  // namespace

Keys config_keys(const std::string& toml) {
  Keys keys;
  try {
    add("", toml::parse(toml), keys);
  } catch (const toml::parse_error&) {
    keys.clear();
  }
  return keys;
}

}  // namespace rondo
