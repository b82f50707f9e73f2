#include "core/random.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

using namespace rondo;

TEST_SUITE_BEGIN("core/random");

TEST_CASE("a stream is a pure function of its key") {
  KeyedRandom a(7, 1, 2);
  KeyedRandom b(7, 1, 2);
  KeyedRandom c(7, 1, 3);
  CHECK(a.next() == b.next());
  CHECK(a.next() != c.next());
}

TEST_CASE("an order is a permutation, another one in each epoch") {
  std::vector<int64_t> first = permutation(100, 1, 0);
  CHECK(first == permutation(100, 1, 0));
  CHECK(first != permutation(100, 1, 1));
  CHECK(first != permutation(100, 2, 0));
  std::sort(first.begin(), first.end());
  std::vector<int64_t> all(100);
  std::iota(all.begin(), all.end(), 0);
  CHECK(first == all);
  CHECK(permutation(0, 1, 0).empty());
}

TEST_CASE("every order is as likely as any other") {
  constexpr int kOrders = 6;  // of three elements
  constexpr int kOfEach = 1000;
  std::map<std::vector<int64_t>, int> counts;
  for (uint64_t seed = 0; seed < kOrders * kOfEach; ++seed) {
    ++counts[permutation(3, seed, 0)];
  }
  CHECK(counts.size() == kOrders);
  for (const auto& [order, count] : counts) {
    CHECK(std::abs(count - kOfEach) < 200);  // some seven standard deviations
  }
}

TEST_CASE("uniform and normal numbers have their moments") {
  constexpr int kDraws = 20000;
  constexpr double kTolerance = 0.05;  // some seven standard errors of a mean of 20,000
  KeyedRandom random(3);
  double uniform = 0.0;
  double normal = 0.0;
  double square = 0.0;
  for (int i = 0; i < kDraws; ++i) {
    uniform += random.uniform();
    const double x = random.normal();
    normal += x;
    square += x * x;
  }
  CHECK(std::abs(uniform / kDraws - 0.5) < kTolerance);
  CHECK(std::abs(normal / kDraws) < kTolerance);
  CHECK(std::abs(square / kDraws - 1.0) < kTolerance);
}

TEST_SUITE_END();
