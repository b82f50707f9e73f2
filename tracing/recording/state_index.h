#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/step.h"

namespace rondo {

/// Finds which part of the captured state a tensor is.
class StateIndex {
 public:
  explicit StateIndex(std::function<CapturedState()> provide);

  /// The name and the tensor of the state that `tensor` is; one that only lies in its memory is
  /// "view of <name>" and itself. Asks again what the state is before it says that there is none:
  /// state may be made inside the step.
  std::optional<std::pair<std::string, at::Tensor>> find(const at::Tensor& tensor);

 private:
  void refresh();
  const std::pair<std::string, at::Tensor>* same_view(const at::Tensor& tensor) const;

  std::function<CapturedState()> provide_;
  CapturedState state_;
  std::unordered_map<const c10::StorageImpl*, std::vector<size_t>> by_storage_;
};

}  // namespace rondo
