#pragma once

#include <optional>
#include <string>
#include <utility>

#include "core/option_types.h"

namespace rondo {

/// An option that is given, or found out from the data the model is built for. "auto" in a config.
template <class T>
struct Auto {
  std::optional<T> given = {};

  Auto() = default;

  Auto(T value) : given(std::move(value)) {}  // NOLINT

  bool is_auto() const { return !given; }

  const T& operator*() const { return *given; }
};

template <class T>
struct OptionType<Auto<T>> {
  static std::string name() { return "\"auto\" or " + OptionType<T>::name(); }

  static std::optional<Auto<T>> read(const ConfigValue& value, FaultSink& faults) {
    const auto* word = value.get_if<std::string>();
    if (word != nullptr && *word == "auto") {
      return Auto<T>();
    }
    auto read = OptionType<T>::read(value, faults);
    return read ? std::optional<Auto<T>>(std::move(*read)) : std::nullopt;
  }

  static ConfigValue write(const Auto<T>& value) {
    return value.is_auto() ? ConfigValue(std::string("auto")) : OptionType<T>::write(*value);
  }
};

}  // namespace rondo
