// Kernels of rondo's own that draw random numbers: the same as LibTorch's, and as many.

#include "tracing/kernels/own_kernels.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/types.h>

#include "tracing/kernel_checks.h"

TEST_SUITE_BEGIN("tracing/kernels/random_kernels");

using namespace rondo;
using namespace rondo::test;

namespace {

std::function<Batch(int)> batches(int64_t count) {
  return [=](int step) { return Batch{{"x", random({count}, step)}}; };
}

}  // namespace

TEST_CASE("masks of a dropout, of every probability and size") {
  for (const double p : {0.0, 1e-12, 0.1, 1.0 / 3.0, 0.5, 0.9, 1.0}) {
    for (const int64_t count : {1, 7, 311, 312, 313, 1024, 5000}) {
      check_same(
          fmt::format("{} numbers, with probability {}", count, p),
          [=](const Batch& x) { return std::vector{at::empty_like(x["x"]).bernoulli_(p)}; },
          batches(count),
          1);
    }
  }
}

TEST_CASE("masks begin anywhere among a generator's words") {
  for (const int64_t before : {1, 2, 623, 624, 625}) {
    check_same(
        fmt::format("after {} words", before),
        [=](const Batch& x) {
          // One word each.
          const at::Tensor others = at::rand({before});
          const at::Tensor mask = at::empty_like(x["x"]).bernoulli_(0.25);
          return std::vector{others, mask, at::randn({3}), at::empty_like(mask).bernoulli_(0.75)};
        },
        batches(700),
        2);
  }
}

TEST_CASE("masks of other dtypes, layouts and probabilities are left to LibTorch") {
  check_same(
      "double, strided and of a tensor",
      [](const Batch& x) {
        const at::Tensor rows = at::empty({10, 10});
        rows.t().bernoulli_(0.5);
        return std::vector{at::empty({9}, at::kDouble).bernoulli_(0.5),
                           rows.t(),
                           at::empty_like(x["x"]).bernoulli_(x["x"].sigmoid())};
      },
      batches(50),
      0);
}

TEST_SUITE_END();
