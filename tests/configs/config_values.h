#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "core/config_value.h"

namespace rondo::test {

/// Equal kinds and values, whatever the order of keys; positions do not count, a NaN equals a NaN.
inline bool same_value(const ConfigValue& a, const ConfigValue& b);

inline bool same_table(const ConfigTable& a, const ConfigTable& b) {
  if (a.entries().size() != b.entries().size()) {
    return false;
  }
  for (const ConfigEntry& entry : a.entries()) {
    const ConfigValue* other = b.find(entry.key);
    if (other == nullptr || !same_value(entry.value, *other)) {
      return false;
    }
  }
  return true;
}

inline bool same_list(const ConfigArray& a, const ConfigArray& b) {
  if (a.size() != b.size()) {
    return false;
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_value(a[i], b[i])) {
      return false;
    }
  }
  return true;
}

inline bool same_number(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

template <class T>
bool same_plain(const ConfigValue& a, const ConfigValue& b) {
  const T* left = a.get_if<T>();
  const T* right = b.get_if<T>();
  return left != nullptr && right != nullptr && *left == *right;
}

inline bool same_value(const ConfigValue& a, const ConfigValue& b) {
  if (a.get_if<ConfigTable>() != nullptr && b.get_if<ConfigTable>() != nullptr) {
    return same_table(*a.get_if<ConfigTable>(), *b.get_if<ConfigTable>());
  }
  if (a.get_if<ConfigArray>() != nullptr && b.get_if<ConfigArray>() != nullptr) {
    return same_list(*a.get_if<ConfigArray>(), *b.get_if<ConfigArray>());
  }
  if (a.get_if<double>() != nullptr && b.get_if<double>() != nullptr) {
    return same_number(*a.get_if<double>(), *b.get_if<double>());
  }
  return same_plain<bool>(a, b) || same_plain<int64_t>(a, b) || same_plain<std::string>(a, b);
}

/// The value at `key`, which must be there.
inline const ConfigValue& value_at(const ConfigValue& table, std::string_view key) {
  return *table.get_if<ConfigTable>()->find(key);
}

}  // namespace rondo::test
