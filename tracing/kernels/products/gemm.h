#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "tracing/kernels/products/gemm_shape.h"

namespace rondo {

/// One way to compute products of one shape: by BLAS, or by oneDNN or rondo itself with a given
/// summation.
class Gemm {
 public:
  static Gemm by_blas(const GemmShape& shape) { return Gemm(By::Blas, shape, {}); }

  static Gemm by_onednn(const GemmShape& shape, Summation summation) {
    return Gemm(By::OneDnn, shape, std::move(summation));
  }

  /// \param summation  with blocks such that `can_multiply_panels`
  static Gemm by_panels(const GemmShape& shape, Summation summation) {
    return Gemm(By::Panels, shape, std::move(summation));
  }

  /// The same on the calling thread alone, whatever threads the libraries have: waking one takes
  /// longer than small products do.
  Gemm alone() const {
    Gemm gemm = *this;
    gemm.is_alone_ = true;
    return gemm;
  }

  /// `a`, `b`, `c`: as the shape says; `c` may not overlap the others.
  void run(const float* a, const float* b, float* c) const;

  /// Without blocks for BLAS, which has its own.
  const Summation& summation() const { return summation_; }

 private:
  enum class By { Blas, OneDnn, Panels };

  Gemm(By by, const GemmShape& shape, Summation summation)
      : by_(by), shape_(shape), summation_(std::move(summation)) {}

  void run_as_it_is(const float* a, const float* b, float* c) const;
  void run_blas(const float* a, const float* b, float* c) const;
  void run_onednn(const float* a, const float* b, float* c) const;

  By by_;
  GemmShape shape_;
  Summation summation_;
  bool is_alone_ = false;
};

/// The fastest way that gives the bits of BLAS. All sum up an element's products in the order of k,
/// the libraries in blocks of their own; given BLAS's blocks, rondo's product has the same bits,
/// and often that of oneDNN. That is tried on random numbers and timed once a shape, then
/// remembered. Must be called under the thread count under which the products run, of which they
/// use all or one.
Gemm exact_gemm(const GemmShape& shape);

/// The same with bits that need not be BLAS's, but follow from the shape and not from the clock, so
/// that two runs round alike. Where `b` has few columns they are those of BLAS if rondo's product
/// can give them, else its own; where it has many, those of oneDNN in one go if there is enough to
/// do, else BLAS's, which are also those of gradients of weights.
Gemm fast_gemm(const GemmShape& shape);

/// How rondo's product has to sum up to give the bits of `exact_gemm`; none where it cannot. It is
/// remembered, and holds for a thread count, as those are.
std::optional<Summation> panels_like_exact(const GemmShape& shape);

/// Blocks of k in which oneDNN adds up products that it computes without packing, which are those
/// of its recurrent layers.
/// Source: src/cpu/x64/gemm/f32/jit_avx512_common_gemm_f32.cpp of oneDNN 3.7.
std::vector<int> blocks_without_packing(int k);

/// The fastest way that gives the bits of those products, which are added to zero where `beta` is
/// 0. Needs AVX-512.
Gemm gemm_without_packing(const GemmShape& shape);

}  // namespace rondo
