#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace rondo {

/// Memory in which tensors stand one behind the other, for what goes to other processes as a whole.
class FlatRooms {
 public:
  /// Calls `work` once for each dtype, with the values of that dtype in one flat tensor, and copies
  /// what it leaves there back. Allocates nothing once it has seen such values.
  /// \param values  on the CPU
  void each_dtype(const std::vector<at::Tensor>& values,
                  const std::function<void(at::Tensor&)>& work);

 private:
  at::Tensor& room_for(at::ScalarType dtype, int64_t count);

  std::vector<at::Tensor> rooms_;  // one for each size: a run has few
};

}  // namespace rondo
