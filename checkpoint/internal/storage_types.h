#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string_view>

namespace rondo::detail {

/// Name of the class in Python's `torch` that stands for a storage of this type, such as
/// "FloatStorage"; "" when there is none.
std::string_view storage_class(c10::ScalarType type);

std::optional<c10::ScalarType> type_of_storage_class(std::string_view name);

}  // namespace rondo::detail
