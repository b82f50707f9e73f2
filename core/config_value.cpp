#include "core/config_value.h"

#include <fmt/format.h>

#include <algorithm>

namespace rondo {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

struct TextOf {
  std::string operator()(std::monostate) const { return ""; }

  std::string operator()(bool value) const { return value ? "true" : "false"; }

  std::string operator()(int64_t value) const { return std::to_string(value); }

  std::string operator()(double value) const {
    const std::string text = fmt::format("{}", value);
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }

  std::string operator()(const std::string& value) const { return quoted(value); }

  std::string operator()(const ConfigArray& values) const {
    std::string text;
    for (const ConfigValue& value : values) {
      text += (text.empty() ? "" : ", ") + value.to_text();
    }
    return "[" + text + "]";
  }

  std::string operator()(const ConfigTable& table) const {
    std::string text;
    for (const ConfigEntry& entry : table.entries()) {
      text += (text.empty() ? "" : ", ") + toml_key(entry.key) + " = " + entry.value.to_text();
    }
    return text.empty() ? "{}" : "{ " + text + " }";
  }
};

}  // namespace

std::string toml_key(const std::string& key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
  return bare ? key : quoted(key);
}

const ConfigEntry* ConfigTable::find_entry(std::string_view key) const {
  for (const ConfigEntry& entry : entries_) {
    if (entry.key == key) {
      return &entry;
    }
  }
  return nullptr;
}

const ConfigValue* ConfigTable::find(std::string_view key) const {
  const ConfigEntry* entry = find_entry(key);
  return entry != nullptr ? &entry->value : nullptr;
}

ConfigValue* ConfigTable::find(std::string_view key) {
  return const_cast<ConfigValue*>(static_cast<const ConfigTable*>(this)->find(key));
}

void ConfigTable::set(std::string_view key, ConfigValue value, SourcePosition key_position) {
  if (ConfigValue* known = find(key)) {
    *known = std::move(value);
    return;
  }
  entries_.push_back({std::string(key), std::move(key_position), std::move(value)});
}

bool ConfigTable::erase(std::string_view key) {
  const auto at = std::find_if(
      entries_.begin(), entries_.end(), [&](const ConfigEntry& entry) { return entry.key == key; });
  if (at == entries_.end()) {
    return false;
  }
  entries_.erase(at);
  return true;
}

std::string ConfigValue::to_text() const {
  return std::visit(TextOf{}, value_);
}

FaultSink FaultSink::inside(std::string_view key) const {
  const bool is_index = !key.empty() && key.front() == '[';
  const std::string separator = path_.empty() || is_index ? "" : ".";
  return {path_ + separator + std::string(key), faults_};
}

void FaultSink::add(const SourcePosition& position, std::string message) {
  faults_.push_back({position, path_, std::move(message)});
}

}  // namespace rondo
