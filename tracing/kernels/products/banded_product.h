#pragma once

#include <optional>
#include <utility>

#include "tracing/kernels/products/gemm.h"

namespace rondo {

/// A product one factor of which is zero but for a band, as the weights of causal attention and
/// their gradients are: half of its multiplications are by zero. What is zero is looked up at each
/// run, a block of rows at a time; a factor without zeros costs a look at its corners.
/// The bits are those of `exact_gemm`: sums begin with zero, to which a product with zero adds
/// nothing. Where the other factor is not finite it adds NaN, and to a sum of -0, which only
/// products too small for a float make, it may add +0: there the whole product is to be computed.
class BandedProduct {
 public:
  /// None where the shape is too small to leave anything out, something is added to the product, or
  /// rondo's product does not have the bits of BLAS's.
  static std::optional<BandedProduct> like_exact(const GemmShape& shape);

  /// `a`, `b`, `c`: as the shape says; `c` may not overlap the others.
  /// \return false, with anything in `c`, where the whole product has to be computed
  bool run(const float* a, const float* b, float* c) const;

 private:
  BandedProduct(const GemmShape& shape, Summation summation)
      : shape_(shape), summation_(std::move(summation)) {}

  GemmShape shape_;
  Summation summation_;
};

}  // namespace rondo
