#include "tracing/kernels/products/banded_product.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tracing/gemm_product.h"

TEST_SUITE_BEGIN("tracing/kernels/banded_product");

using namespace rondo;
using test::same_bytes;

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

/// A product one factor of which may have a band.
struct Product : test::GemmProduct {
  using GemmProduct::GemmProduct;

  float& at(Banded which, int row, int k) {
    return which == Banded::First ? left(row, k) : right(k, row);
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
    for (const float odd : {std::numeric_limits<float>::quiet_NaN(),
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

TEST_SUITE_END();
