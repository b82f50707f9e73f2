#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace rondo {

/// Memory of the host in which tensors stand one behind the other, for what goes to other processes
/// as a whole.
class FlatRooms {
 public:
  /// Calls `work` once for each dtype, with the values of that dtype in one flat tensor, and copies
  /// what it leaves there back. Allocates nothing once it has seen such values on the CPU; values
  /// of another device are waited for.
  void each_dtype(const std::vector<at::Tensor>& values,
                  const std::function<void(at::Tensor&)>& work);

 private:
  /// Of one dtype: the memory of the largest, and its views of each size that was asked for.
  struct Rooms {
    at::Tensor memory;
    std::vector<at::Tensor> views;
  };

  at::Tensor& room_for(at::ScalarType dtype, int64_t count);

  std::map<at::ScalarType, Rooms> rooms_;
};

}  // namespace rondo
