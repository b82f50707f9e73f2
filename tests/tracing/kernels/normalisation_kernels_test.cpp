#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "support/with_threads.h"
#include "tracing/kernel_checks.h"

TEST_SUITE_BEGIN("tracing/kernels/normalisation_kernels");

using namespace rondo;
using namespace rondo::test;

TEST_CASE("batch norm: the same numbers and the same running statistics") {
  for (const int64_t channels : {1, 5, 8, 19}) {
    const at::Tensor mean = at::randn({channels});
    const at::Tensor variance = at::rand({channels});
    check_same(
        std::to_string(channels) + " channels",
        [=](const Batch& x) {
          const auto [y, m, s] = at::native_batch_norm(
              x["a"], x["w"], x["b"], mean, variance, /*training=*/true, 0.1, 1e-5);
          return std::vector{y, m, s};
        },
        [=](int step) {
          return Batch{{"a", random({6, channels, 5, 7}, step)},
                       {"w", random({channels}, step + 1)},
                       {"b", random({channels}, step + 2)}};
        },
        1,
        {{"mean", mean}, {"variance", variance}});
  }
}

TEST_CASE("the gradient of a batch norm, with planes that end within a vector") {
  for (const int64_t width : {5, 8}) {
    check_same(
        "three gradients",
        [](const Batch& x) {
          const auto [dx, dw, db] = at::native_batch_norm_backward(x["dy"],
                                                                   x["x"],
                                                                   x["w"],
                                                                   /*running_mean=*/{},
                                                                   /*running_var=*/{},
                                                                   x["mean"],
                                                                   x["deviation"],
                                                                   /*train=*/true,
                                                                   1e-5,
                                                                   {true, true, true});
          return std::vector{dx, dw, db};
        },
        [=](int step) {
          return Batch{{"dy", random({6, 3, 7, width}, step)},
                       {"x", random({6, 3, 7, width}, step + 10)},
                       {"w", random({3}, step + 1)},
                       {"mean", random({3}, step + 2)},
                       {"deviation", random({3}, step + 3).abs()}};
        },
        1);
  }
}

TEST_CASE("layer norm over rows of any width that is a multiple of a vector's") {
  for (const int64_t width : {8, 24, 128, 136, 384, 768, 3000}) {
    check_same(
        std::to_string(width),
        [=](const Batch& x) {
          const auto [y, mean, deviation] =
              at::native_layer_norm(x["x"], {width}, x["w"], x["b"], 1e-5);
          return std::vector{y, mean, deviation};
        },
        [=](int step) {
          return Batch{{"x", random({3, 7, width}, step) * 3 + 1},
                       {"w", random({width}, step + 1)},
                       {"b", random({width}, step + 2)}};
        },
        1);
  }
}

TEST_CASE("the gradient of a layer norm over such rows, by one thread and by two") {
  for (const int threads : {1, 2}) {
    const WithThreads some(threads);
    CAPTURE(threads);
    for (const int64_t width : {8, 24, 128, 136, 384, 768, 3000}) {
      check_same(
          std::to_string(width),
          [=](const Batch& x) {
            const auto [y, mean, deviation] =
                at::native_layer_norm(x["x"], {width}, x["w"], x["b"], 1e-5);
            const auto [dx, dw, db] = at::native_layer_norm_backward(
                x["dy"], x["x"], {width}, mean, deviation, x["w"], x["b"], {true, true, true});
            return std::vector{dx, dw, db};
          },
          [=](int step) {
            return Batch{{"x", random({3, 7, width}, step) * 3 + 1},
                         {"dy", random({3, 7, width}, step + 3)},
                         {"w", random({width}, step + 1)},
                         {"b", random({width}, step + 2)}};
          },
          2);
    }
  }
}

TEST_SUITE_END();
