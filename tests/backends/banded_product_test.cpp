#include "backends/plan/kernels/banded_product.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "backends/random_floats.h"

TEST_SUITE_BEGIN("backends/banded_product");

using namespace rondo;

namespace {

/// Whether an element of a factor, by its row or column of the result and by k, is not zero.
using IsNeeded = std::function<bool(int row, int k)>;

struct Kind {
  std::string name;
  IsNeeded is_needed;
};

const std::vector<Kind>& bands() {
  static const std::vector<Kind> all = {
      {"before", [](int row, int k) { return k <= row; }},
      {"behind", [](int row, int k) { return k >= 3 * row; }},
      {"window", [](int row, int k) { return k > row - 20 && k < row + 20; }},
      {"padding", [](int, int k) { return k < 50; }},
      {"half of the rows", [](int row, int) { return row >= 64; }},
      {"nothing", [](int, int) { return false; }},
  };
  return all;
}

enum class Banded { First, Second };

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Sets the numbers between the lines, of `length` each.
void fill_gaps(std::vector<float>& lines, int length, int next, float value) {
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i % static_cast<size_t>(next) >= static_cast<size_t>(length)) {
      lines[i] = value;
    }
  }
}

/// A product, its factors and what is in the result before. Between rows or columns there are gaps
/// of numbers that none may look at.
struct Product {
  GemmShape shape;
  std::vector<float> a;
  std::vector<float> b;
  std::vector<float> before;

  Product(int m, int n, int k, bool transpose_a, bool transpose_b) {
    shape.transpose_a = transpose_a;
    shape.transpose_b = transpose_b;
    shape.m = m;
    shape.n = n;
    shape.k = k;
    shape.lda = (transpose_a ? k : m) + 3;
    shape.ldb = (transpose_b ? n : k) + 2;
    shape.ldc = m + 1;
    a = test::random_floats(shape.lda * (transpose_a ? m : k), 1);
    b = test::random_floats(shape.ldb * (transpose_b ? k : n), 2);
    before = test::random_floats(shape.ldc * n, 3);
    fill_gaps(a, shape.lda - 3, shape.lda, kNaN);
    fill_gaps(b, shape.ldb - 2, shape.ldb, kNaN);
    fill_gaps(before, m, shape.ldc, -0.0F);
  }

  float& first(int row, int k) {
    return a[static_cast<size_t>(shape.transpose_a ? row * shape.lda + k : k * shape.lda + row)];
  }

  float& second(int row, int k) {
    return b[static_cast<size_t>(shape.transpose_b ? k * shape.ldb + row : row * shape.ldb + k)];
  }

  float& at(Banded which, int row, int k) {
    return which == Banded::First ? first(row, k) : second(row, k);
  }

  /// Zeros of both signs, where nothing is needed.
  void clear(Banded which, const IsNeeded& is_needed) {
    const int rows = which == Banded::First ? shape.m : shape.n;
    for (int row = 0; row < rows; ++row) {
      for (int k = 0; k < shape.k; ++k) {
        if (!is_needed(row, k)) {
          at(which, row, k) = (row + k) % 3 == 0 ? -0.0F : 0.0F;
        }
      }
    }
  }

  std::vector<float> whole() const {
    std::vector<float> c = before;
    exact_gemm(shape).run(a.data(), b.data(), c.data());
    return c;
  }

  /// \return whether it was computed
  bool run(std::vector<float>& c) const {
    c = before;
    const auto banded = BandedProduct::like_exact(shape);
    REQUIRE(banded.has_value());
    return banded->run(a.data(), b.data(), c.data());
  }
};

/// Sizes of more than one block, with and without a part of one, a k in several blocks, and
/// one that BLAS does not add to zeros; those of which rondo's product has the bits of this BLAS.
std::vector<Product> products() {
  std::vector<Product> all;
  const auto add = [&](const Product& product) {
    if (panels_like_exact(product.shape)) {
      all.push_back(product);
    }
  };
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      add(Product(96, 96, 104, transpose_a, transpose_b));
      add(Product(128, 96, 128, transpose_a, transpose_b));
      add(Product(131, 157, 150, transpose_a, transpose_b));
      add(Product(200, 200, 700, transpose_a, transpose_b));
    }
  }
  return all;
}

bool are_skipped() {
  const bool are_none = products().empty();
  if (are_none) {
    MESSAGE("skipped: rondo's product does not have the bits of this BLAS");
  }
  return are_none;
}

bool same_bytes(const std::vector<float>& x, const std::vector<float>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

template <class Check>
void for_each_product(const Check& check) {
  for (const Product& product : products()) {
    CAPTURE(product.shape.k);
    CAPTURE(product.shape.transpose_a);
    CAPTURE(product.shape.transpose_b);
    for (const Banded which : {Banded::First, Banded::Second}) {
      CAPTURE(which == Banded::First);
      check(product, which);
    }
  }
}

}  // namespace

TEST_CASE("a product with a band of numbers has the bits of the whole one") {
  if (are_skipped()) {
    return;
  }
  for_each_product([](const Product& product, Banded which) {
    for (const Kind& kind : bands()) {
      CAPTURE(kind.name);
      Product banded = product;
      banded.clear(which, kind.is_needed);
      std::vector<float> c;
      CHECK(banded.run(c));
      CHECK(same_bytes(c, banded.whole()));
    }
  });
}

TEST_CASE("of very many rows, blocks are larger") {
  for (const Banded which : {Banded::First, Banded::Second}) {
    Product product(
        which == Banded::First ? 4200 : 97, which == Banded::First ? 97 : 4200, 96, false, false);
    if (!panels_like_exact(product.shape)) {
      MESSAGE("skipped: rondo's product does not have the bits of this BLAS");
      return;
    }
    product.clear(which, [](int, int k) { return k < 50; });
    std::vector<float> c;
    CHECK(product.run(c));
    CHECK(same_bytes(c, product.whole()));
  }
}

TEST_CASE("a product without many zeros is left to others") {
  if (are_skipped()) {
    return;
  }
  for_each_product([](Product product, Banded which) {
    std::vector<float> c;
    CHECK(!product.run(c));
    product.clear(which, [](int row, int k) { return row > 40 || k > 40; });
    CHECK(!product.run(c));
  });
}

TEST_CASE("zeros times what is not finite are not left out") {
  if (are_skipped()) {
    return;
  }
  for_each_product([](const Product& product, Banded which) {
    for (const float odd : {kNaN,
                            std::numeric_limits<float>::signaling_NaN(),
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
      Product banded = product;
      banded.clear(which, bands().front().is_needed);
      std::vector<float> c;
      const Banded other = which == Banded::First ? Banded::Second : Banded::First;
      banded.at(other, 0, banded.shape.k - 1) = odd;
      CHECK(!banded.run(c));
      banded.at(other, 0, banded.shape.k - 1) = std::numeric_limits<float>::max();
      banded.at(which, 0, 0) = odd;  // where it is multiplied
      CHECK(banded.run(c));
      CHECK(same_bytes(c, banded.whole()));
    }
  });
}

TEST_CASE("sums too small for a float have the signs of the whole product's") {
  if (are_skipped()) {
    return;
  }
  for_each_product([](const Product& product, Banded which) {
    Product banded = product;
    std::fill(banded.a.begin(), banded.a.end(), -1e-30F);
    std::fill(banded.b.begin(), banded.b.end(), 1e-30F);
    for (const Kind& kind : bands()) {
      CAPTURE(kind.name);
      Product tiny = banded;
      tiny.clear(which, kind.is_needed);
      std::vector<float> c;
      if (tiny.run(c)) {
        CHECK(same_bytes(c, tiny.whole()));
      }
    }
  });
}

TEST_CASE("products that are small, or are added to something, have no bands") {
  CHECK(!BandedProduct::like_exact(Product(64, 64, 200, false, false).shape));
  CHECK(!BandedProduct::like_exact(Product(200, 200, 64, false, false).shape));
  GemmShape added = Product(200, 200, 200, false, false).shape;
  added.beta = 1.0F;
  CHECK(!BandedProduct::like_exact(added));
}
