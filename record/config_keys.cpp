#include "record/config_keys.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <optional>
#include <sstream>

namespace rondo {

namespace {

using Keys = std::map<std::string, std::string>;

std::string text_of(const toml::node& node) {
  std::ostringstream text;
  node.visit([&](const auto& value) {
    if constexpr (toml::is_string<decltype(value)> || toml::is_floating_point<decltype(value)>) {
      text << fmt::format("{}", value.get());  // TOML's own form has 17 digits
    } else if constexpr (toml::is_value<decltype(value)>) {
      text << value;
    }
  });
  return text.str();
}

/// "[lr, momentum]"; nothing where an element is a table or a list.
std::optional<std::string> list_of_values(const toml::array& array) {
  std::string text;
  for (const toml::node& element : array) {
    if (!element.is_value()) {
      return std::nullopt;
    }
    text += (text.empty() ? "" : ", ") + text_of(element);
  }
  return "[" + text + "]";
}

void add(const std::string& path, const toml::node& node, Keys& keys);

/// What an element of a list is named after, so that another one before it changes no key: the
/// component that it is, or its label; "" for others.
std::string name_of(const toml::node& element) {
  const toml::table* const table = element.as_table();
  if (table == nullptr) {
    return element.value<std::string>().value_or("");
  }
  if (const auto label = (*table)["label"].value<std::string>()) {
    return *label;
  }
  return table->size() == 1 ? std::string(table->begin()->first.str()) : "";
}

/// What the element's keys are below its name.
void add_element(const std::string& path, const toml::node& element, Keys& keys) {
  const toml::table* const table = element.as_table();
  if (table == nullptr && element.is_string()) {
    keys[path] = "{}";  // as a component without options
  } else if (table != nullptr && table->size() == 1 && !table->contains("label")) {
    const toml::node& options = table->begin()->second;
    const bool is_empty = options.is_table() && options.as_table()->empty();
    is_empty ? void(keys[path] = "{}") : add(path, options, keys);
  } else {
    add(path, element, keys);
  }
}

void add_list(const std::string& path, const toml::array& array, Keys& keys) {
  std::map<std::string, int> seen;
  for (size_t i = 0; i < array.size(); ++i) {
    std::string name = name_of(*array.get(i));
    if (name.empty()) {
      name = std::to_string(i);
    } else if (const int number = ++seen[name]; number > 1) {
      name += fmt::format("#{}", number);
    }
    add_element(path + "." + name, *array.get(i), keys);
  }
}

void add(const std::string& path, const toml::node& node, Keys& keys) {
  if (const toml::table* table = node.as_table()) {
    for (const auto& [key, value] : *table) {
      add(fmt::format("{}{}{}", path, path.empty() ? "" : ".", key.str()), value, keys);
    }
  } else if (const toml::array* array = node.as_array()) {
    if (const std::optional<std::string> values = list_of_values(*array)) {
      keys[path] = *values;
    } else {
      add_list(path, *array, keys);
    }
  } else {
    keys[path] = text_of(node);
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
