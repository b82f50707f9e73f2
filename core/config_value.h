#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.h"

namespace rondo {

class ConfigValue;

/// One `key = value` of a config table; the position is the key's.
struct ConfigEntry;

using ConfigArray = std::vector<ConfigValue>;

/// Keys in file order.
class ConfigTable {
 public:
  const ConfigValue* find(std::string_view key) const;
  ConfigValue* find(std::string_view key);
  const ConfigEntry* find_entry(std::string_view key) const;

  /// Replaces or adds.
  void set(std::string_view key, ConfigValue value, SourcePosition key_position = {});
  bool erase(std::string_view key);

  bool empty() const { return entries_.empty(); }

  const std::vector<ConfigEntry>& entries() const { return entries_; }

 private:
  std::vector<ConfigEntry> entries_;
};

/// A value of a config file with the place where it stands; independent of the file's format.
class ConfigValue {
 public:
  using Variant =
      std::variant<std::monostate, bool, int64_t, double, std::string, ConfigArray, ConfigTable>;

  ConfigValue() = default;

  explicit ConfigValue(Variant value, SourcePosition position = {})
      : value_(std::move(value)), position_(std::move(position)) {}

  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&value_);
  }

  template <class T>
  T* get_if() {
    return std::get_if<T>(&value_);
  }

  const SourcePosition& position() const { return position_; }

  void set_position(SourcePosition position) { position_ = std::move(position); }

  bool is_absent() const { return std::holds_alternative<std::monostate>(value_); }

  /// As it would stand in a TOML file: `3`, `2.5`, `"text"`, `[1, 2]`, `{ a = 1 }`.
  std::string to_text() const;

 private:
  Variant value_;
  SourcePosition position_;
};

struct ConfigEntry {
  std::string key;
  SourcePosition key_position;
  ConfigValue value;
};

/// A key as it stands in a TOML file: bare where that is allowed, else in quotes.
std::string toml_key(const std::string& key);

/// Where faults are gathered while a value is read: the dotted path of the value and the list.
class FaultSink {
 public:
  FaultSink(std::string path, std::vector<Fault>& faults)
      : path_(std::move(path)), faults_(faults) {}

  const std::string& path() const { return path_; }

  /// The sink of a key inside, `path.key`, sharing the list.
  FaultSink inside(std::string_view key) const;

  void add(const SourcePosition& position, std::string message);

 private:
  std::string path_;
  std::vector<Fault>& faults_;
};

}  // namespace rondo
