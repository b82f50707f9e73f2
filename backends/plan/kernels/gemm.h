#pragma once

#include <cstddef>
#include <tuple>
#include <vector>

namespace rondo {

/// c = op(a) · op(b) + beta · c in single precision, column by column: op(a) is m × k, op(b) is
/// k × n, a leading dimension is the distance of columns.
struct GemmShape {
  bool transpose_a = false;
  bool transpose_b = false;
  int m = 0;
  int n = 0;
  int k = 0;
  int lda = 0;
  int ldb = 0;
  int ldc = 0;
  float beta = 0.0F;

  bool operator<(const GemmShape& other) const { return fields() < other.fields(); }

 private:
  std::tuple<bool, bool, int, int, int, int, int, int, float> fields() const {
    return {transpose_a, transpose_b, m, n, k, lda, ldb, ldc, beta};
  }
};

/// One way to compute products of one shape: by BLAS, or by oneDNN, whole or in blocks of k that
/// are added one after another.
class Gemm {
 public:
  static Gemm by_blas(const GemmShape& shape) { return Gemm(shape, {}); }

  /// \param blocks  they add up to k
  static Gemm by_onednn(const GemmShape& shape, std::vector<int> blocks) {
    return Gemm(shape, std::move(blocks));
  }

  /// `a`, `b`, `c`: as the shape says; `c` may not overlap the others.
  void run(const float* a, const float* b, float* c) const;

  bool is_blas() const { return blocks_.empty(); }

 private:
  Gemm(const GemmShape& shape, std::vector<int> blocks)
      : shape_(shape), blocks_(std::move(blocks)) {}

  GemmShape shape_;
  std::vector<int> blocks_;  // of oneDNN; none: BLAS
};

/// The fastest way that gives the bits of BLAS. Both libraries sum up an element's products in the
/// order of k, but in blocks of their own; where oneDNN can be given BLAS's blocks, the bits are
/// the same. That is tried on random numbers and timed once a shape, then remembered.
/// Must be called under the thread count under which the products run.
Gemm exact_gemm(const GemmShape& shape);

/// oneDNN in one go, where there is enough to do: on most machines and shapes the fastest, whatever
/// the bits.
Gemm fast_gemm(const GemmShape& shape);

}  // namespace rondo
