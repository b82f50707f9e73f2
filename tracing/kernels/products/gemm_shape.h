#pragma once

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
  bool is_part = false;  ///< computed beside others of its kind, each by one thread

  bool operator<(const GemmShape& other) const { return fields() < other.fields(); }

 private:
  std::tuple<bool, bool, int, int, int, int, int, int, float, bool> fields() const {
    return {transpose_a, transpose_b, m, n, k, lda, ldb, ldc, beta, is_part};
  }
};

/// How the products of an element are summed up, on which its bits depend.
struct Summation {
  std::vector<int> blocks;  ///< of k, one after another; they add up to k
  /// Whether the first block's sum is added to zero where `beta` is 0, or stored as it is: a sum of
  /// numbers too small for a float may be -0, and plus zero it is +0.
  bool adds_to_zero = false;
};

}  // namespace rondo
