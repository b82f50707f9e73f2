#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <vector>

namespace rondo {

/// One allocation for many tensors, one behind the other, each beginning on a cache line. Every
/// tensor has a storage of its own: to LibTorch they are as if each had been allocated by itself,
/// and a file that one of them is written to holds no other. Made without the dispatcher: a step
/// that is being recorded does not see it. All are on one device.
class FlatMemory {
 public:
  /// Whether a tensor's memory may go elsewhere: LibTorch's own on the CPU, which nobody is copying
  /// meanwhile. False for what a user lent, mapped or shares with another process, and for what
  /// lies in such an allocation already.
  static bool may_move(const at::Tensor& tensor);

  /// Asks for room for the memory of a tensor on the CPU, which moves there with all that share it:
  /// they see the same elements after as before, whichever of them was named.
  void move(const at::Tensor& tensor);

  /// Asks for room for a tensor of the shape, dtype and device of `value` (and its strides, where
  /// those are dense).
  void add_like(const at::Tensor& value);

  /// \return the added tensors, in order, uninitialised
  std::vector<at::Tensor> allocate();

 private:
  struct Moved {
    c10::Storage storage;
    int64_t offset;
  };

  struct Added {
    at::Tensor like;
    int64_t offset;
  };

  int64_t reserve(int64_t bytes);

  std::vector<Moved> moved_;
  std::vector<Added> added_;
  int64_t bytes_ = 0;
};

}  // namespace rondo
