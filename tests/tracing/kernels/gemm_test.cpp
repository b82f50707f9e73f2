#include "tracing/kernels/products/gemm.h"

#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "support/with_threads.h"
#include "tracing/kernels/products/blas.h"
#include "tracing/kernels/products/panel_product.h"
#include "tracing/random_floats.h"

TEST_SUITE_BEGIN("tracing/kernels/gemm");

using namespace rondo;

namespace {

GemmShape shape_of(int m, int n, int k, bool transpose_a, bool transpose_b, float beta) {
  GemmShape shape;
  shape.transpose_a = transpose_a;
  shape.transpose_b = transpose_b;
  shape.m = m;
  shape.n = n;
  shape.k = k;
  shape.lda = transpose_a ? k : m;
  shape.ldb = transpose_b ? n : k;
  shape.ldc = m + 1;
  shape.beta = beta;
  return shape;
}

std::vector<GemmShape> shapes() {
  std::vector<GemmShape> all;
  for (const int k : {5, 64, 384, 784, 1000}) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        all.push_back(shape_of(33, 18, k, transpose_a, transpose_b, transpose_a ? 1.0F : 0.0F));
      }
    }
  }
  return all;
}

// In which rondo's product sums up where its bits are free.
std::vector<int> longest_blocks(int k) {
  if (k == 784) {
    return {400, 384};
  }
  return k == 1000 ? std::vector<int>{512, 488} : std::vector<int>{k};
}

/// \param scale  of both factors
std::vector<float> result_of(const Gemm& gemm, const GemmShape& shape, float scale = 1.0F) {
  std::vector<float> a = test::random_floats(shape.m * shape.k, 7);
  std::vector<float> b = test::random_floats(shape.k * shape.n, 8);
  for (std::vector<float>* const factor : {&a, &b}) {
    std::transform(
        factor->begin(), factor->end(), factor->begin(), [&](float x) { return x * scale; });
  }
  std::vector<float> c = test::random_floats(shape.ldc * shape.n, 9);
  gemm.run(a.data(), b.data(), c.data());
  return c;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(a[i]) - b[i]));
  }
  return largest;
}

}  // namespace

TEST_CASE("the exact product has the bits of BLAS, whichever library computes it") {
  for (const GemmShape& shape : shapes()) {
    CAPTURE(shape.k);
    const std::vector<float> expected = result_of(Gemm::by_blas(shape), shape);
    const std::vector<float> got = result_of(exact_gemm(shape), shape);
    CHECK(std::memcmp(expected.data(), got.data(), got.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("the exact product has BLAS's signs of zero where sums are too small for a float") {
  for (const GemmShape& shape : shapes()) {
    CAPTURE(shape.k);
    for (const float scale : {1e-23F, 1e-24F}) {
      const std::vector<float> expected = result_of(Gemm::by_blas(shape), shape, scale);
      const std::vector<float> got = result_of(exact_gemm(shape), shape, scale);
      CHECK(std::memcmp(expected.data(), got.data(), got.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("with several threads the exact product has the bits that BLAS has with them") {
  const test::WithThreads two(2);
  for (GemmShape shape : shapes()) {
    for (const int n : {18, 400}) {
      shape.n = n;
      shape.ldb = shape.transpose_b ? n : shape.k;
      CAPTURE(shape.k);
      CAPTURE(n);
      const std::vector<float> expected = result_of(Gemm::by_blas(shape), shape);
      CHECK(result_of(exact_gemm(shape), shape) == expected);
      CHECK(at::get_num_threads() == 2);
    }
  }
}

TEST_CASE("products that are computed several at a time have bits that no clock decides") {
  const test::WithThreads two(2);
  for (GemmShape shape : shapes()) {
    CAPTURE(shape.k);
    const std::vector<float> together = result_of(Gemm::by_blas(shape), shape);
    const std::vector<float> alone = result_of(Gemm::by_blas(shape).alone(), shape);
    shape.is_part = true;
    const std::vector<float> got = result_of(exact_gemm(shape), shape);
    CHECK((got == together || got == alone));
  }
}

TEST_CASE("a product on one thread alone leaves the others to whoever comes next") {
  const test::WithThreads two(2);
  const GemmShape shape = shape_of(33, 400, 384, false, false, 0.0F);
  const std::vector<float> together = result_of(Gemm::by_blas(shape), shape);
  const std::vector<float> alone = result_of(Gemm::by_blas(shape).alone(), shape);
  CHECK(largest_difference(together, alone) < 1e-4);
  CHECK(at::get_num_threads() == 2);
}

TEST_CASE("the fast product is the same number but for rounding, and touches nothing else") {
  for (const GemmShape& shape : shapes()) {
    CAPTURE(shape.k);
    const std::vector<float> expected = result_of(Gemm::by_blas(shape), shape);
    CHECK(largest_difference(expected, result_of(fast_gemm(shape), shape)) < 1e-3);
  }
}

TEST_CASE("the bits of the fast product are BLAS's or rondo's, whoever is the fastest") {
  for (const GemmShape& shape : shapes()) {
    CAPTURE(shape.k);
    const std::vector<int> blocks = longest_blocks(shape.k);
    if (can_multiply_panels(shape, blocks)) {
      const std::vector<float> got = result_of(fast_gemm(shape), shape);
      CHECK((got == result_of(Gemm::by_blas(shape), shape) ||
             got == result_of(Gemm::by_panels(shape, {blocks}), shape)));
    }
  }
}

TEST_CASE("large gradients of weights have BLAS's bits also where they are free") {
  const GemmShape shape = shape_of(64, 300, 700, /*transpose_a=*/false, /*transpose_b=*/true, 0.0F);
  CHECK(result_of(fast_gemm(shape), shape) == result_of(Gemm::by_blas(shape), shape));
}

TEST_CASE("a product without packing sums up in halves and blocks of 384, whoever computes it") {
  CHECK(blocks_without_packing(384) == std::vector<int>{384});
  CHECK(blocks_without_packing(385) == std::vector<int>{193, 192});
  CHECK(blocks_without_packing(1000) == std::vector<int>{384, 308, 308});
  for (const GemmShape& shape : shapes()) {
    CAPTURE(shape.k);
    const std::vector<int> blocks = blocks_without_packing(shape.k);
    if (can_multiply_panels(shape, blocks)) {
      const std::vector<float> expected = result_of(Gemm::by_panels(shape, {blocks}), shape);
      CHECK(result_of(gemm_without_packing(shape), shape) == expected);
    }
  }
}

TEST_CASE("blocks of k add up to the product") {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const GemmShape shape = shape_of(20, 30, 100, transpose_a, transpose_b, 1.0F);
      const std::vector<int> blocks = {16, 64, 20};
      const std::vector<float> expected = result_of(Gemm::by_blas(shape), shape);
      if (blas::onednn_sgemm() != nullptr) {
        const Gemm onednn = Gemm::by_onednn(shape, {blocks});
        CHECK(largest_difference(expected, result_of(onednn, shape)) < 1e-4);
      }
      if (can_multiply_panels(shape, blocks)) {
        const Gemm panels = Gemm::by_panels(shape, {blocks});
        CHECK(largest_difference(expected, result_of(panels, shape)) < 1e-4);
      }
    }
  }
}

TEST_SUITE_END();
