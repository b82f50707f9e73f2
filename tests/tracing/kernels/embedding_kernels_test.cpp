// Kernels of embeddings and their gradients.

#include <ATen/CPUGeneratorImpl.h>
#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "tracing/error_text.h"
#include "tracing/kernel_checks.h"

TEST_SUITE_BEGIN("tracing/kernels/embedding_kernels");

using namespace rondo;
using namespace rondo::test;

TEST_CASE("embeddings and their gradients, of rows that come often, never and as padding") {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{50}, {7, 9}, {0}}) {
    CAPTURE(sizes.size());
    check_same(
        "embedding",
        [](const Batch& x) {
          const at::Tensor rows = at::embedding(x["table"], x["numbers"]);
          return std::vector{rows,
                             at::embedding_dense_backward(rows, x["numbers"], 12, -1, false),
                             at::embedding_dense_backward(rows, x["numbers"], 12, 3, false)};
        },
        [&](int step) {
          const at::Generator generator = at::detail::createCPUGenerator(step + 1);
          return Batch{{"table", random({12, 19}, step)},
                       {"numbers", at::randint(10, sizes, generator, at::kLong)}};
        },
        3);
  }
}

TEST_CASE("gradients of embeddings that lie in another order, as sequences hand them back") {
  check_same(
      "gradient",
      [](const Batch& x) {
        const at::Tensor transposed = x["grad"].transpose(0, 1);
        const at::Tensor part = x["wide"].narrow(2, 1, 8);
        return std::vector{
            at::embedding_dense_backward(transposed, x["numbers"], 5, -1, false),
            at::embedding_dense_backward(part, x["numbers"], 5, 2, false),
        };
      },
      [](int step) {
        const at::Generator generator = at::detail::createCPUGenerator(step + 1);
        return Batch{{"grad", random({7, 3, 8}, step)},
                     {"wide", random({3, 7, 10}, step)},
                     {"numbers", at::randint(5, {3, 7}, generator, at::kLong)}};
      },
      2);
}

TEST_CASE("gradients of embeddings by frequency are left to LibTorch") {
  check_same(
      "gradient",
      [](const Batch& x) {
        return std::vector{at::embedding_dense_backward(x["grad"], x["numbers"], 5, -1, true)};
      },
      [](int step) {
        return Batch{{"grad", random({3, 8}, step)},
                     {"numbers", torch::tensor({int64_t{1}, int64_t{1}, int64_t{4}})}};
      },
      0);
}

TEST_CASE("a row that an embedding lacks is an error that names its position") {
  const auto batch = [](int64_t number) {
    return Batch{{"table", random({3, 8}, 1)}, {"numbers", torch::tensor({int64_t{0}, number})}};
  };
  const Recorded recorded(
      [](const Batch& x) { return std::vector{at::embedding(x["table"], x["numbers"])}; },
      batch(1));
  PlannedExecutor plan(recorded.program, TextLog(LogLevel::Error));
  for (const int64_t number : {0, 1, 2}) {
    plan.run(batch(number), kAlwaysDue);
  }
  for (const int64_t number : {int64_t{-1}, int64_t{3}, int64_t{1} << 40}) {
    const std::string error = error_text([&] { plan.run(batch(number), kAlwaysDue); });
    CHECK_MESSAGE(error.find("position 1") != std::string::npos, error);
  }
}

TEST_SUITE_END();
