// Matrix products of a step, one by one and in batches.

#include <ATen/core/dispatch/Dispatcher.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/types.h>

#include <limits>
#include <utility>
#include <vector>

#include "core/blas_library.h"
#include "core/openblas_core.h"
#include "tracing/kernel_checks.h"
#include "tracing/kernels/products/product_shape.h"

TEST_SUITE_BEGIN("tracing/kernels/product_kernels");

using namespace rondo;
using namespace rondo::test;

TEST_CASE("matrices of more rows than BLAS can count are left to LibTorch") {
  const auto matrix = [](int64_t rows, int64_t columns) {
    Slot slot;
    slot.sizes = {rows, columns};
    slot.strides = {columns, 1};
    return slot;
  };
  for (const bool fits : {true, false}) {
    const int64_t rows = int64_t{std::numeric_limits<int>::max()} + (fits ? 0 : 1);
    const Slot a = matrix(rows, 4);
    const Slot b = matrix(4, 3);
    const Slot result = matrix(rows, 3);
    CHECK(product_of(&result, &a, &b).has_value() == fits);
  }
}

TEST_CASE("matrix products in every order of their factors") {
  const auto batch = [](int step) {
    return Batch{{"a", random({5, 7}, step)}, {"b", random({7, 9}, step + 50)}};
  };
  check_same(
      "a b", [](const Batch& x) { return std::vector{x["a"].mm(x["b"])}; }, batch, 1);
  check_same(
      "transposed factors",
      [](const Batch& x) {
        const at::Tensor at = x["a"].t().contiguous().t();
        const at::Tensor bt = x["b"].t().contiguous().t();
        return std::vector{at.mm(x["b"]), x["a"].mm(bt), at.mm(bt)};
      },
      batch,
      5);
  check_same(
      "part of a matrix",
      [](const Batch& x) { return std::vector{x["a"].narrow(1, 2, 4).mm(x["b"].narrow(0, 1, 4))}; },
      batch,
      1);
  check_same(
      "with a bias",
      [](const Batch& x) {
        return std::vector{at::addmm(x["b"].select(0, 0).contiguous(), x["a"], x["b"])};
      },
      batch,
      1);
}

TEST_CASE("batches of matrix products") {
  const auto batch = [](int step) {
    return Batch{{"a", random({3, 9, 17}, step)}, {"b", random({3, 17, 8}, step + 50)}};
  };
  check_same(
      "one after another",
      [](const Batch& x) { return std::vector{x["a"].bmm(x["b"])}; },
      batch,
      1);
  check_same(
      "transposed, and heads that lie side by side",
      [](const Batch& x) {
        const at::Tensor a = x["a"].transpose(0, 1).contiguous().transpose(0, 1);
        const at::Tensor b = x["b"].transpose(1, 2).contiguous().transpose(1, 2);
        return std::vector{a.bmm(b)};
      },
      batch,
      3);
  check_same(
      "too small for a library",
      [](const Batch& x) {
        return std::vector{x["a"].narrow(1, 0, 2).bmm(x["b"].narrow(2, 0, 2))};
      },
      batch,
      0);
}

TEST_CASE("the weights of causal attention, half of which are zero, and their gradients") {
  const auto batch = [](int step) {
    at::Tensor values = random({5, 130, 32}, step + 50);
    if (step == 3) {
      values[2][129][7] = std::numeric_limits<float>::infinity();  // times zero, in most rows
    }
    return Batch{{"weights", random({5, 130, 130}, step).tril()}, {"values", values}};
  };
  check_same(
      "causal",
      [](const Batch& x) {
        const at::Tensor& weights = x["weights"];
        const at::Tensor& values = x["values"];
        return std::vector{weights.bmm(values),
                           weights.transpose(1, 2).bmm(values),
                           values.transpose(1, 2).bmm(weights)};
      },
      batch,
      3);
}

TEST_CASE("products that are added to a sum, of more terms than a library adds up at once") {
  register_with_dispatcher();
  // These sum up the last rows of a product in an order of their own: a tile of it has other bits.
  const std::string core = openblas_core(blas_library().handle);
  const bool has_own_last_rows = core == "Haswell" || core == "Zen";
  const auto add_product =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("rondo::mm_to_", "")
          .typed<void(const at::Tensor&, const at::Tensor&, const at::Tensor&, bool)>();
  for (const int64_t terms : {64, 400, 1000}) {
    for (const auto& [rows, columns] : {std::pair(5, 9), std::pair(300, 130), std::pair(784, 64)}) {
      const at::Tensor sum = random({rows, columns}, 7);
      const bool is_in_tiles = terms > 64 && rows > 5;
      check_same(
          fmt::format("{} x {} of {} terms", rows, columns, terms),
          [&, sum = sum](const Batch& x) {
            add_product.call(sum, x["a"].t(), x["b"], true);
            return std::vector{sum.sum({0})};
          },
          [terms = terms, rows = rows, columns = columns](int step) {
            return Batch{{"a", random({terms, rows}, step)},
                         {"b", random({terms, columns}, step + 50)}};
          },
          is_in_tiles && has_own_last_rows ? 1 : 2,
          {{"sum", sum}});
    }
  }
}

TEST_SUITE_END();
