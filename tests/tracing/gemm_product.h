#pragma once

#include <cstring>
#include <limits>
#include <vector>

#include "tracing/kernels/products/gemm_shape.h"
#include "tracing/random_floats.h"

namespace rondo::test {

/// Factors of random numbers, and what the result holds before. Between rows or columns there are
/// gaps of numbers that none may look at.
struct GemmProduct {
  GemmShape shape;
  std::vector<float> a;
  std::vector<float> b;
  std::vector<float> before;

  GemmProduct(int m, int n, int k, bool transpose_a, bool transpose_b) {
    constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
    const int line_of_a = transpose_a ? k : m;
    const int line_of_b = transpose_b ? n : k;
    shape.transpose_a = transpose_a;
    shape.transpose_b = transpose_b;
    shape.m = m;
    shape.n = n;
    shape.k = k;
    shape.lda = line_of_a + 3;
    shape.ldb = line_of_b + 2;
    shape.ldc = m + 1;
    a = random_floats(shape.lda * (transpose_a ? m : k), 1);
    b = random_floats(shape.ldb * (transpose_b ? k : n), 2);
    before = random_floats(shape.ldc * n, 3);
    fill_gaps(a, line_of_a, shape.lda, kNaN);
    fill_gaps(b, line_of_b, shape.ldb, kNaN);
    fill_gaps(before, m, shape.ldc, -0.0F);
  }

  /// Of op(a), by its row.
  float& left(int i, int k) { return a[place_in_a(i, k)]; }

  float left(int i, int k) const { return a[place_in_a(i, k)]; }

  /// Of op(b), by its column.
  float& right(int k, int j) { return b[place_in_b(k, j)]; }

  float right(int k, int j) const { return b[place_in_b(k, j)]; }

 private:
  size_t place_in_a(int i, int k) const {
    return static_cast<size_t>(shape.transpose_a ? i * shape.lda + k : k * shape.lda + i);
  }

  size_t place_in_b(int k, int j) const {
    return static_cast<size_t>(shape.transpose_b ? k * shape.ldb + j : j * shape.ldb + k);
  }

  /// \param length  of a line
  /// \param next    from one line to the next
  static void fill_gaps(std::vector<float>& lines, int length, int next, float value) {
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i % static_cast<size_t>(next) >= static_cast<size_t>(length)) {
        lines[i] = value;
      }
    }
  }
};

inline bool same_bytes(const std::vector<float>& x, const std::vector<float>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

}  // namespace rondo::test
