#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/named_tensor.h"

namespace rondo {

/// Named tensors in insertion order. Nesting is in the path: "meta/length". Copies share the
/// tensors.
class TensorMap {
 public:
  using Item = NamedTensor;

  TensorMap() = default;
  TensorMap(std::initializer_list<Item> items);  // NOLINT(google-explicit-constructor): {{"x", t}}

  /// \throws DataError  when there is no such path, naming the known ones
  const at::Tensor& operator[](std::string_view path) const;

  /// The tensor at `path`, or null.
  const at::Tensor* find(std::string_view path) const;

  /// Replaces the tensor at `path`, or adds it at the end.
  void set(std::string_view path, at::Tensor tensor);

  const std::vector<Item>& items() const& { return items_; }

  /// Of a temporary, such as the result of `predict`: by value, so that iterating is safe.
  std::vector<Item> items() && { return std::move(items_); }

  bool empty() const { return items_.empty(); }

 private:
  std::vector<Item> items_;
};

/// One example of a data set: a Batch without its first dimension.
struct Sample : TensorMap {
  using TensorMap::TensorMap;
};

/// The input of one step: every tensor has the batch as its first dimension (0-dim tensors have
/// none).
struct Batch : TensorMap {
  using TensorMap::TensorMap;

  /// Rows of the first tensor that has a dimension; 0 when none has.
  int64_t size() const;
};

/// What a model's forward returns. Training needs a 0-dim "loss".
struct Outputs : TensorMap {
  using TensorMap::TensorMap;
};

}  // namespace rondo
