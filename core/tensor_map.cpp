#include "core/tensor_map.h"

#include <fmt/format.h>

#include "core/error.h"

namespace rondo {

TensorMap::TensorMap(std::initializer_list<Item> items) {
  for (const Item& item : items) {
    set(item.first, item.second);
  }
}

const at::Tensor& TensorMap::operator[](std::string_view path) const {
  if (const at::Tensor* tensor = find(path)) {
    return *tensor;
  }
  std::string known;
  for (const Item& item : items_) {
    known += (known.empty() ? "" : ", ") + item.first;
  }
  throw DataError(fmt::format("there is no tensor \"{}\"; there are: {}",
                              path,
                              known.empty() ? std::string("none at all") : known));
}

const at::Tensor* TensorMap::find(std::string_view path) const {
  for (const Item& item : items_) {
    if (item.first == path) {
      return &item.second;
    }
  }
  return nullptr;
}

void TensorMap::set(std::string_view path, at::Tensor tensor) {
  for (Item& item : items_) {
    if (item.first == path) {
      item.second = std::move(tensor);
      return;
    }
  }
  items_.emplace_back(std::string(path), std::move(tensor));
}

int64_t Batch::size() const {
  for (const Item& item : items()) {
    if (item.second.dim() > 0) {
      return item.second.size(0);
    }
  }
  return 0;
}

}  // namespace rondo
