#include "configs/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "configs/internal/nesting.h"
#include "configs/toml_file.h"
#include "core/error.h"
#include "core/json_reader.h"

namespace rondo {

namespace {

const SourcePosition kCommandLine{"command line", 0, 0};

[[noreturn]] void fail(std::string_view path, const std::string& message) {
  throw ConfigError(Fault{kCommandLine, std::string(path), message});
}

/// The names between dots; `[0]` after a name is a name of its own.
std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts{""};
  bool is_in_brackets = false;
  for (const char c : path) {
    if (c == ']' && is_in_brackets) {
      is_in_brackets = false;
    } else if (c == '.' || c == '[') {
      parts.emplace_back();
      is_in_brackets = c == '[';
    } else {
      parts.back() += c;
    }
  }
  const bool has_empty = std::find(parts.begin(), parts.end(), "") != parts.end();
  if (has_empty || parts.size() > detail::kDeepestNesting) {
    fail(path,
         fmt::format("expected at most {} names with dots between them, such as "
                     "trainer.init.loop.max_steps=100",
                     detail::kDeepestNesting));
  }
  return parts;
}

/// `value` with every position on the command line.
ConfigValue placed(const ConfigValue& value) {
  if (const auto* table = value.get_if<ConfigTable>()) {
    ConfigTable copy;
    for (const ConfigEntry& entry : table->entries()) {
      copy.set(entry.key, placed(entry.value), kCommandLine);
    }
    return ConfigValue(std::move(copy), kCommandLine);
  }
  if (const auto* array = value.get_if<ConfigArray>()) {
    ConfigArray copy;
    for (const ConfigValue& element : *array) {
      copy.push_back(placed(element));
    }
    return ConfigValue(std::move(copy), kCommandLine);
  }
  ConfigValue copy = value;
  copy.set_position(kCommandLine);
  return copy;
}

/// The one value of a TOML text `value = …`; empty when there is another key as well.
std::optional<ConfigValue> only_value(const std::string& text) {
  const ConfigValue parsed = parse_toml("value = " + text, kCommandLine.file);
  const auto& entries = parsed.get_if<ConfigTable>()->entries();
  return entries.size() == 1 ? std::optional(placed(entries.front().value)) : std::nullopt;
}

/// The value as TOML; as a string when it is none, or more than one value.
ConfigValue value_of(const std::string& text) {
  try {
    if (auto value = only_value(text)) {
      return *value;
    }
  } catch (const ConfigError&) {  // no TOML: a string without quotes
  }
  return *only_value(ConfigValue(text).to_text());  // once more, because TOML checks its UTF-8
}

ConfigValue& element_of(ConfigArray& array, const std::string& part, std::string_view path) {
  size_t index = 0;
  const auto [rest, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  if (error != std::errc() || rest != part.data() + part.size() || index >= array.size()) {
    fail(path, fmt::format("\"{}\" is no element of this list, which has {}", part, array.size()));
  }
  return array[index];
}

/// The value inside `parent` that `part` names, made as an empty table when it is missing.
ConfigValue& inside(ConfigValue& parent, const std::string& part, std::string_view path) {
  if (auto* array = parent.get_if<ConfigArray>()) {
    return element_of(*array, part, path);
  }
  auto* table = parent.get_if<ConfigTable>();
  if (table == nullptr) {
    fail(path, fmt::format("\"{}\" lies inside a value that is neither table nor list", part));
  }
  if (table->find(part) == nullptr) {
    table->set(part, ConfigValue(ConfigTable{}, kCommandLine), kCommandLine);
  }
  return *table->find(part);
}

/// The value that a path names, made when it is missing.
ConfigValue& value_at(ConfigValue& root, std::string_view path) {
  ConfigValue* at = &root;
  for (const std::string& part : parts_of(path)) {
    at = &inside(*at, part, path);
  }
  return *at;
}

ConfigValue::Variant scalar_of(std::string_view word) {
  if (word == "null") {
    return std::monostate();
  }
  if (word == "true" || word == "false") {
    return word == "true";
  }
  const char* const end = word.data() + word.size();
  int64_t integer = 0;
  if (const auto read = std::from_chars(word.data(), end, integer);
      read.ec == std::errc() && read.ptr == end) {
    return integer;
  }
  double number = 0.0;
  if (const auto read = std::from_chars(word.data(), end, number);
      read.ec == std::errc() && read.ptr == end && std::isfinite(number)) {
    return number;
  }
  throw DataError(fmt::format("\"{}\" is no JSON value", word));
}

ConfigValue json_value(JsonReader& reader, int depth) {
  if (depth > static_cast<int>(detail::kDeepestNesting)) {
    throw DataError(fmt::format("more than {} values inside each other", detail::kDeepestNesting));
  }
  switch (reader.next()) {
    case '{': {
      ConfigTable table;
      reader.object([&](const std::string& key) {
        table.set(key, json_value(reader, depth + 1), kCommandLine);
      });
      return ConfigValue(std::move(table), kCommandLine);
    }
    case '[': {
      ConfigArray array;
      reader.array([&] { array.push_back(json_value(reader, depth + 1)); });
      return ConfigValue(std::move(array), kCommandLine);
    }
    case '"':
      return ConfigValue(reader.string(), kCommandLine);
    default:
      return ConfigValue(scalar_of(reader.word()), kCommandLine);
  }
}

void erase(ConfigValue& root, const std::string& path) {
  const size_t dot = path.rfind('.');
  ConfigValue& parent =
      dot == std::string::npos ? root : value_at(root, std::string_view(path).substr(0, dot));
  if (auto* table = parent.get_if<ConfigTable>()) {
    table->erase(dot == std::string::npos ? path : path.substr(dot + 1));
  }
}

/// \param prefix  of the keys' paths: "" or one that ends with a dot
void merge(ConfigValue& root, const ConfigTable& table, const std::string& prefix) {
  for (const ConfigEntry& entry : table.entries()) {
    const std::string path = prefix + entry.key;
    const auto* const inner = entry.value.get_if<ConfigTable>();
    if (inner != nullptr && !inner->empty()) {
      merge(root, *inner, path + ".");
    } else if (entry.value.is_absent()) {
      erase(root, path);
    } else {
      value_at(root, path) = entry.value;
    }
  }
}

}  // namespace

void apply_params(ConfigValue& root, std::string_view json) {
  ConfigValue params;
  try {
    JsonReader reader(json);
    params = json_value(reader, 0);
    reader.end();
  } catch (const DataError& error) {
    fail("--params", error.what());
  }
  const auto* const table = params.get_if<ConfigTable>();
  if (table == nullptr) {
    fail("--params", "expected a JSON object, such as {\"trainer.init.seed\": 3}");
  }
  merge(root, *table, "");
}

void apply_override(ConfigValue& root, std::string_view assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    fail(assignment, "expected key.path=value");
  }
  const std::string_view path = assignment.substr(0, equals);
  value_at(root, path) = value_of(std::string(assignment.substr(equals + 1)));
}

}  // namespace rondo
