#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

namespace rondo {

/// Tensors that get their bytes back at the end of a scope.
class PutBack {
 public:
  PutBack() = default;
  PutBack(const PutBack&) = delete;
  PutBack& operator=(const PutBack&) = delete;

  ~PutBack() {
    for (const auto& [tensor, copy] : copies_) {
      tensor.copy_(copy);
    }
  }

  /// \param copy  what it will hold
  void add(const at::Tensor& tensor, const at::Tensor& copy) { copies_.emplace_back(tensor, copy); }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;
};

}  // namespace rondo
