#include "tracing/program/tensor_list.h"

#include <ATen/core/List.h>

namespace rondo {

c10::IValue tensor_list(const std::vector<at::Tensor>& tensors, const c10::TypePtr& type) {
  const auto optional = type->cast<c10::OptionalType>();
  const auto list = (optional ? optional->getElementType() : type)->expect<c10::ListType>();
  if (list->getElementType()->kind() != c10::TypeKind::OptionalType) {
    return c10::List<at::Tensor>(tensors);
  }
  c10::List<c10::optional<at::Tensor>> items;
  for (const at::Tensor& tensor : tensors) {
    items.push_back(tensor.defined() ? c10::optional<at::Tensor>(tensor) : c10::nullopt);
  }
  return items;
}

}  // namespace rondo
