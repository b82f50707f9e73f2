#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/tensor_map.h"

namespace rondo::test {

/// The integers `x` of a batch.
inline std::vector<int64_t> values(const Batch& batch) {
  const at::Tensor& x = batch["x"];
  return {x.data_ptr<int64_t>(), x.data_ptr<int64_t>() + x.numel()};
}

}  // namespace rondo::test
