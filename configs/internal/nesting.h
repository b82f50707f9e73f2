#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace rondo::detail {

/// How deep keys and brackets may nest: far beyond what configs need, far below what a stack bears.
constexpr size_t kDeepestNesting = 64;

/// Finds where brackets and dots of a TOML text nest deeper than `deepest`, without building
/// anything: trees are walked and destroyed recursively, and toml++ itself bounds brackets but not
/// the dots of keys (`a.a.a…`), so that a short line could end the process. A table header and the
/// lines below it count separately. Text that is no TOML gives some answer, never an error.
/// \return the offset of the first place that is too deep; empty when none is
std::optional<size_t> find_too_deep(std::string_view text, size_t deepest);

}  // namespace rondo::detail
