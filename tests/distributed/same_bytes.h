#pragma once

#include <ATen/core/Tensor.h>

#include <cstring>

namespace rondo::test {

inline bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() &&
         (a.numel() == 0 || std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0);
}

}  // namespace rondo::test
