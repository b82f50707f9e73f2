#include "checkpoint/internal/storage_types.h"

#include <utility>

namespace rondo::detail {

namespace {

constexpr std::pair<c10::ScalarType, std::string_view> kStorageClasses[] = {
    {c10::ScalarType::Float, "FloatStorage"},
    {c10::ScalarType::Double, "DoubleStorage"},
    {c10::ScalarType::Half, "HalfStorage"},
    {c10::ScalarType::BFloat16, "BFloat16Storage"},
    {c10::ScalarType::Byte, "ByteStorage"},
    {c10::ScalarType::Char, "CharStorage"},
    {c10::ScalarType::Short, "ShortStorage"},
    {c10::ScalarType::Int, "IntStorage"},
    {c10::ScalarType::Long, "LongStorage"},
    {c10::ScalarType::Bool, "BoolStorage"},
    {c10::ScalarType::ComplexFloat, "ComplexFloatStorage"},
    {c10::ScalarType::ComplexDouble, "ComplexDoubleStorage"},
};

}  // namespace

std::string_view storage_class(c10::ScalarType type) {
  for (const auto& [known, name] : kStorageClasses) {
    if (known == type) {
      return name;
    }
  }
  return "";
}

std::optional<c10::ScalarType> type_of_storage_class(std::string_view name) {
  for (const auto& [type, known] : kStorageClasses) {
    if (known == name) {
      return type;
    }
  }
  return std::nullopt;
}

}  // namespace rondo::detail
