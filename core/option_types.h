#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config_value.h"
#include "core/time.h"

namespace rondo {

namespace detail {

/// Adds "expected <type>, got <value>" and returns nothing.
std::nullopt_t mismatch(const ConfigValue& found, const std::string& type, FaultSink& faults);

std::optional<int64_t> read_integer(const ConfigValue& value,
                                    int64_t least,
                                    int64_t most,
                                    FaultSink& faults);
std::optional<double> read_number(const ConfigValue& value, FaultSink& faults);
std::optional<Time> read_time(const ConfigValue& value, FaultSink& faults);

/// A leading "~" stands for the home directory.
std::optional<std::filesystem::path> read_path(const ConfigValue& value, FaultSink& faults);
ConfigValue write_time(const Time& time);

}  // namespace detail

/// How a C++ type is read from and written to a config. Specialised here for what options are made
/// of.
template <class T>
struct OptionType;

template <>
struct OptionType<bool> {
  static std::string name() { return "true or false"; }

  static std::optional<bool> read(const ConfigValue& value, FaultSink& faults) {
    const bool* found = value.get_if<bool>();
    return found != nullptr ? std::optional<bool>(*found) : detail::mismatch(value, name(), faults);
  }

  static ConfigValue write(bool value) { return ConfigValue(value); }
};

template <class Integer>
struct IntegerOptionType {
  static std::string name() { return "an integer"; }

  static std::optional<Integer> read(const ConfigValue& value, FaultSink& faults) {
    constexpr int64_t kLeast =
        std::is_unsigned_v<Integer> ? 0 : std::numeric_limits<int64_t>::min();
    constexpr bool kNarrow = sizeof(Integer) < sizeof(int64_t);
    constexpr int64_t kMost = kNarrow ? static_cast<int64_t>(std::numeric_limits<Integer>::max())
                                      : std::numeric_limits<int64_t>::max();
    const auto read =
        detail::read_integer(value, kNarrow && kLeast < 0 ? -kMost - 1 : kLeast, kMost, faults);
    return read ? std::optional<Integer>(static_cast<Integer>(*read)) : std::nullopt;
  }

  static ConfigValue write(Integer value) { return ConfigValue(static_cast<int64_t>(value)); }
};

template <>
struct OptionType<int> : IntegerOptionType<int> {};

template <>
struct OptionType<int64_t> : IntegerOptionType<int64_t> {};

template <>
struct OptionType<uint64_t> : IntegerOptionType<uint64_t> {};

template <>
struct OptionType<double> {
  static std::string name() { return "a number"; }

  static std::optional<double> read(const ConfigValue& value, FaultSink& faults) {
    return detail::read_number(value, faults);
  }

  static ConfigValue write(double value) { return ConfigValue(value); }
};

template <>
struct OptionType<std::string> {
  static std::string name() { return "a string"; }

  static std::optional<std::string> read(const ConfigValue& value, FaultSink& faults) {
    const std::string* found = value.get_if<std::string>();
    return found != nullptr ? std::optional<std::string>(*found)
                            : detail::mismatch(value, name(), faults);
  }

  static ConfigValue write(const std::string& value) { return ConfigValue(value); }
};

template <>
struct OptionType<std::filesystem::path> {
  static std::string name() { return "a path"; }

  static std::optional<std::filesystem::path> read(const ConfigValue& value, FaultSink& faults) {
    return detail::read_path(value, faults);
  }

  static ConfigValue write(const std::filesystem::path& value) {
    return ConfigValue(value.string());
  }
};

/// An integer counts updates, a float is a fraction of the run, a string is a Time; false is never.
template <>
struct OptionType<Time> {
  static std::string name() { return "an integer (updates), a fraction or a Time like \"2ep\""; }

  static std::optional<Time> read(const ConfigValue& value, FaultSink& faults) {
    return detail::read_time(value, faults);
  }

  static ConfigValue write(const Time& value) { return detail::write_time(value); }
};

/// Absent and empty are the same.
template <class T>
struct OptionType<std::optional<T>> {
  static std::string name() { return OptionType<T>::name(); }

  static std::optional<std::optional<T>> read(const ConfigValue& value, FaultSink& faults) {
    auto read = OptionType<T>::read(value, faults);
    return read ? std::optional<std::optional<T>>(std::move(read)) : std::nullopt;
  }

  static ConfigValue write(const std::optional<T>& value) {
    return value ? OptionType<T>::write(*value) : ConfigValue();
  }
};

template <class T>
struct OptionType<std::vector<T>> {
  static std::string name() { return "a list, each " + OptionType<T>::name(); }

  static std::optional<std::vector<T>> read(const ConfigValue& value, FaultSink& faults) {
    const auto* array = value.get_if<ConfigArray>();
    if (array == nullptr) {
      return detail::mismatch(value, name(), faults);
    }
    std::vector<T> result;
    for (size_t i = 0; i < array->size(); ++i) {
      FaultSink inside = faults.inside("[" + std::to_string(i) + "]");
      if (auto read = OptionType<T>::read((*array)[i], inside)) {
        result.push_back(std::move(*read));
      }
    }
    return result;
  }

  static ConfigValue write(const std::vector<T>& values) {
    ConfigArray array;
    for (const T& value : values) {
      array.push_back(OptionType<T>::write(value));
    }
    return ConfigValue(std::move(array));
  }
};

}  // namespace rondo
