#include "tracing/kernels/products/panel_product.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "support/with_threads.h"
#include "tracing/gemm_product.h"

TEST_SUITE_BEGIN("tracing/kernels/panel_product");

using namespace rondo;
using test::same_bytes;

namespace {

// A product whose sums are cut into blocks of k.
struct BlockwiseProduct : test::GemmProduct {
  std::vector<int> blocks;

  BlockwiseProduct(bool transpose_a, bool transpose_b, int m, int n, std::vector<int> of_k)
      : GemmProduct(m, n, std::accumulate(of_k.begin(), of_k.end(), 0), transpose_a, transpose_b),
        blocks(std::move(of_k)) {}

  std::vector<float> by_panels(bool adds_to_zero = false) const {
    std::vector<float> c = before;
    multiply_panels(shape, {blocks, adds_to_zero}, a.data(), b.data(), c.data());
    return c;
  }

  std::vector<float> by_packed_panels() const {
    std::vector<float> c = before;
    PackedPanels panels(shape.m, blocks);
    panels.pack(a.data(), shape.lda, shape.transpose_a);
    panels.multiply(b.data(), shape.ldb, shape.n, c.data(), shape.ldc, shape.beta != 0.0F);
    return c;
  }

  // One element after the other, as the header promises.
  std::vector<float> one_by_one() const {
    std::vector<float> c = before;
    for (int j = 0; j < shape.n; ++j) {
      for (int i = 0; i < shape.m; ++i) {
        float& element = c[static_cast<size_t>(j * shape.ldc + i)];
        element *= shape.beta;
        int k = 0;
        for (const int block : blocks) {
          float sum = 0.0F;
          for (const int end = k + block; k < end; ++k) {
            sum = std::fma(left(i, k), right(k, j), sum);
          }
          element += sum;
        }
      }
    }
    return c;
  }
};

bool is_skipped(const BlockwiseProduct& product) {
  if (can_multiply_panels(product.shape, product.blocks)) {
    return false;
  }
  MESSAGE("skipped: this machine has no AVX-512");
  return true;
}

}  // namespace

TEST_CASE("each element is a chain of fused multiply-adds, block by block") {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      // Up to three registers, whole panels and parts; tiles of all widths up to more than one.
      for (const int m : {1, 7, 16, 17, 32, 33, 48, 49, 70, 96, 130}) {
        for (int n = 1; n <= 30; ++n) {
          BlockwiseProduct product(transpose_a, transpose_b, m, n, {1, 16, 21});
          if (is_skipped(product)) {
            return;
          }
          product.shape.beta = n % 2 == 0 ? 1.0F : 0.0F;
          CAPTURE(m);
          CAPTURE(n);
          CHECK(same_bytes(product.by_panels(), product.one_by_one()));
        }
      }
    }
  }
}

TEST_CASE("a matrix that is packed once gives the same bits") {
  for (const bool transpose_a : {false, true}) {
    for (const int m : {1, 16, 33, 48, 70, 130}) {
      for (const int n : {1, 9, 30}) {
        for (const float beta : {0.0F, 1.0F}) {
          BlockwiseProduct product(transpose_a, /*transpose_b=*/false, m, n, {1, 16, 21});
          if (is_skipped(product)) {
            return;
          }
          product.shape.beta = beta;
          CAPTURE(m);
          CAPTURE(n);
          CHECK(same_bytes(product.by_packed_panels(), product.by_panels()));
        }
      }
    }
  }
}

TEST_CASE("a sum that is too small for a float keeps its sign where it is not added to zero") {
  for (const int m : {1, 16, 33, 48}) {
    BlockwiseProduct product(true, /*transpose_b=*/false, m, 9, {21, 16});
    if (is_skipped(product)) {
      return;
    }
    std::fill(product.a.begin(), product.a.end(), -1e-30F);
    std::fill(product.b.begin(), product.b.end(), 1e-30F);
    for (const bool adds_to_zero : {false, true}) {
      const std::vector<float> c = product.by_panels(adds_to_zero);
      CHECK(c[0] == 0.0F);
      CHECK(std::signbit(c[0]) == !adds_to_zero);
      CHECK(std::signbit(c[static_cast<size_t>(m - 1)]) == !adds_to_zero);
    }
    CHECK(same_bytes(product.by_packed_panels(), product.by_panels()));
  }
}

TEST_CASE("what the target held is not read when nothing is added to it") {
  BlockwiseProduct product(true, false, 40, 20, {33});
  if (is_skipped(product)) {
    return;
  }
  for (float& value : product.before) {
    value = std::numeric_limits<float>::quiet_NaN();
  }
  const std::vector<float> c = product.by_panels();
  for (int j = 0; j < product.shape.n; ++j) {
    const float* const column = c.data() + j * product.shape.ldc;
    CHECK(!std::isnan(column[0]));
    CHECK(!std::isnan(column[product.shape.m - 1]));
    CHECK(std::isnan(column[product.shape.m]));  // the gap behind a column
  }
}

TEST_CASE("threads share the panels, and the bits stay") {
  const BlockwiseProduct product(true, false, 300, 64, {400, 384});
  if (is_skipped(product)) {
    return;
  }
  const std::vector<float> one = product.by_panels();
  const test::WithThreads two(2);
  CHECK(same_bytes(product.by_panels(), one));
}

TEST_CASE("a block longer than what is packed, and factors of the target, are not taken") {
  BlockwiseProduct product(true, false, 32, 16, {513});
  CHECK(!can_multiply_panels(product.shape, product.blocks));
  product.shape.beta = 0.5F;
  CHECK(!can_multiply_panels(product.shape, {256, 257}));
}

TEST_SUITE_END();
