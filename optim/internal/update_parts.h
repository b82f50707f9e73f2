#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

#include "core/parallel.h"
#include "optim/internal/update_loops.h"

namespace rondo::detail {

/// Small enough that what is scaled is still in the innermost cache when the update reads it.
inline constexpr int64_t kScaledAtOnce = 2048;

/// Calls `update(begin, end)` for parts of a parameter's elements, on LibTorch's threads. Where
/// there is a scale, a part of the gradient is multiplied by it just before it is used, in place.
/// \param grad   T, flat
/// \param scale  0-dim, T, on the CPU; undefined for none
template <class T, class Update>
void update_in_parts(const at::Tensor& grad, const at::Tensor& scale, const Update& update) {
  T* const elements = grad.data_ptr<T>();
  const T* const factor = scale.defined() ? scale.data_ptr<T>() : nullptr;
  rondo::parallel_for(grad.numel(), kElementsOfThread, [&](int64_t begin, int64_t end) {
    if (factor == nullptr) {
      update(begin, end);
      return;
    }
    for (int64_t from = begin; from < end; from += kScaledAtOnce) {
      const int64_t to = std::min(from + kScaledAtOnce, end);
      scale_loop<T>(*factor, elements + from, to - from, widest_instruction_set());
      update(from, to);
    }
  });
}

}  // namespace rondo::detail
