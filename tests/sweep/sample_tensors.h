#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <tuple>

namespace rondo::test {

// Tensors for operators to compute on. Their numbers are a function of their shapes.

inline at::Generator sample_generator() {
  return at::detail::createCPUGenerator(/*seed_val=*/11);
}

/// Between 0.1 and 0.9: most functions are defined there.
inline at::Tensor floats(at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat) {
  return at::rand(sizes, sample_generator(), at::TensorOptions()).mul(0.8).add(0.1).to(dtype);
}

inline at::Tensor longs(at::IntArrayRef sizes, int64_t below) {
  return at::randint(below, sizes, sample_generator(), at::TensorOptions().dtype(at::kLong));
}

inline at::Tensor complexes(at::IntArrayRef sizes) {
  return at::complex(floats(sizes), floats(sizes).flip({0}));
}

/// Symmetric, with eigenvalues above zero.
inline at::Tensor positive_matrix(int64_t size) {
  const at::Tensor half = floats({size, size});
  return at::mm(half, half.t()).add(at::eye(size));
}

}  // namespace rondo::test
