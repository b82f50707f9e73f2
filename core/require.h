#pragma once

#include <fmt/format.h>

#include <string_view>

#include "core/error.h"

namespace rondo::detail {

/// For constructors, which validate their options.
/// \param option  with its component: "Mlp: sizes"
/// \throws UsageError  "Mlp: width must be >= 1, got 0"
template <class T>
void require(bool holds, std::string_view option, std::string_view rule, const T& value) {
  if (!holds) {
    throw UsageError(fmt::format("{} must be {}, got {}", option, rule, value));
  }
}

}  // namespace rondo::detail
