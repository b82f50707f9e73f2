#include "tracing/kernels/stored_numbers.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "support/with_threads.h"
#include "tracing/kernel_checks.h"
#include "tracing/kernels/own_kernels.h"

TEST_SUITE_BEGIN("tracing/kernels/stored_numbers");

using namespace rondo;
using namespace rondo::test;

namespace {

/// As `check_same`. Which bits a NaN gets in bfloat16 depends on where LibTorch's vectors end.
void check_narrow(const std::string& name,
                  const Body& body,
                  const std::function<Batch(int)>& batch_of,
                  int kernels) {
  CAPTURE(name);
  const Recorded recorded(body, batch_of(0));
  PlannedExecutor plan(recorded.program, TextLog(LogLevel::Error));
  JitExecutor interpreter(recorded.program);
  const int used = recorded.kernels_of_own(plan.plan());
  CAPTURE(used);
  CHECK((used == kernels || !uses_all_kernels()));
  check_same_bytes({&interpreter, &plan}, batch_of, recorded.state, equal_but_for_nans);
  CHECK(recorded.kernels_of_own(plan.plan()) == used);
}

at::Tensor numbers(at::IntArrayRef sizes, int step) {
  return random(sizes, step).to(at::kBFloat16);
}

/// "a" and "b" in bfloat16, and "f" of the shape of "a" in float32. The first batches, on which a
/// plan tries its kernels, are without NaN.
std::function<Batch(int)> narrow_pairs(at::IntArrayRef a, at::IntArrayRef b) {
  return [a = a.vec(), b = b.vec()](int step) {
    at::Tensor f = random(a, step);
    f = step < 3 ? f : with_odd_numbers(f);
    return Batch{{"a", f.to(at::kBFloat16)}, {"b", numbers(b, step + 100)}, {"f", f}};
  };
}

}  // namespace

TEST_CASE("numbers are widened and rounded as LibTorch does it, all of them") {
  at::Tensor all = at::empty({1 << 16}, at::kShort);
  for (int64_t i = 0; i < all.numel(); ++i) {
    all[i] = static_cast<int16_t>(i);
  }
  const at::Tensor narrow = all.view(at::kBFloat16);
  const at::Tensor wide = narrow.to(at::kFloat);
  const auto* const bits = static_cast<const BFloat16Bits*>(narrow.data_ptr());
  const auto* const numbers = wide.data_ptr<float>();
  int differences = 0;
  for (int64_t i = 0; i < all.numel(); ++i) {
    const float number = number_in(bits[i]);
    const bool is_nan = number != number;
    differences += is_nan ? numbers[i] == numbers[i] : number != numbers[i];
    // Half-way to the next number, and a bit to either side of that.
    for (const uint32_t low : {0U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
      const uint32_t word = (static_cast<uint32_t>(bits[i].bits) << 16) | low;
      float between;
      std::memcpy(&between, &word, sizeof between);
      BFloat16Bits rounded;
      store(between, rounded);
      const bool has_number = between == between;
      differences += has_number && rounded.bits != c10::BFloat16(between).x;
    }
  }
  CHECK(differences == 0);
}

TEST_CASE("element-wise operators of bfloat16") {
  check_narrow(
      "two of a shape",
      [](const Batch& x) {
        const at::Tensor a = x["a"];
        const at::Tensor b = x["b"];
        return std::vector{
            a + b, a - b, a * b, a / b, at::relu(a), at::threshold_backward(b, a, 0), -a};
      },
      narrow_pairs({13, 11}, {13, 11}),
      7);
  check_narrow(
      "a row that is repeated, and parts of matrices",
      [](const Batch& x) {
        at::Tensor sum = x["a"] * 2;
        sum.add_(x["b"]);
        return std::vector{x["a"] + x["b"], sum, x["a"].narrow(1, 3, 5) + x["b"].narrow(0, 2, 5)};
      },
      narrow_pairs({13, 512}, {512}),
      4);
  check_narrow(
      "with a number",
      [](const Batch& x) {
        const at::Tensor a = x["a"];
        at::Tensor filled = a * 3;
        filled.fill_(0.1);
        return std::vector{a * 0.1, a / 3, a + 0.1, a - 0.1, filled};
      },
      narrow_pairs({13, 11}, {3}),
      6);
  check_narrow(
      "a small number, which other numbers hide",
      [](const Batch& x) {
        const at::Tensor a = x["a"] * 1e-5;
        at::Tensor in_place = a * 2;
        in_place.add_(1e-5);
        return std::vector{a + 1e-5, a - 1e-5, 1e-5 - a, at::rsub(a, 1e-5), in_place};
      },
      narrow_pairs({13, 11}, {3}),
      8);
  check_narrow(
      "casts, and sums of both types",
      [](const Batch& x) {
        const at::Tensor f = x["f"] * 1.5;
        at::Tensor in_place = f - 1;
        in_place.add_(x["b"]);
        at::Tensor narrow = x["b"] * 3;
        narrow.add_(f);
        return std::vector{
            narrow, f.to(at::kBFloat16), x["a"].to(at::kFloat), f + x["b"], x["b"] * f, in_place};
      },
      narrow_pairs({13, 512}, {13, 512}),
      9);
}

TEST_CASE("large tensors of bfloat16, which several threads share") {
  const WithThreads three(3);
  check_narrow(
      "side by side",
      [](const Batch& x) { return std::vector{at::relu((x["a"] + x["b"]) * x["a"])}; },
      narrow_pairs({700, 801}, {700, 801}),
      3);
}

TEST_CASE("what attention does to its heads in bfloat16") {
  check_narrow(
      "orders of elements",
      [](const Batch& x) {
        const at::Tensor heads = x["a"].view({4, 24, 8, 16});
        return std::vector{heads.transpose(1, 2).contiguous(),
                           heads.permute({0, 2, 3, 1}).contiguous()};
      },
      narrow_pairs({4, 24 * 8 * 16}, {1}),
      2);
  check_narrow(
      "a mask",
      [](const Batch& x) {
        const at::Tensor mask = at::ones({24, 24}, at::kBool).triu(1);
        return std::vector{x["a"].view({4, 24, 24}).masked_fill(mask, -INFINITY)};
      },
      narrow_pairs({4, 24 * 24}, {1}),
      1);
}

TEST_CASE("softmax of bfloat16 over rows of whole vectors, and its gradient") {
  for (const int64_t columns : {32, 64, 512}) {
    check_narrow(
        "many rows, since rounding hides most differences",
        [](const Batch& x) {
          const at::Tensor shares = x["a"].softmax(-1);
          return std::vector{shares, at::_softmax_backward_data(x["b"], shares, -1, at::kBFloat16)};
        },
        narrow_pairs({2000, columns}, {2000, columns}),
        2);
  }
}

TEST_CASE("products of bfloat16 matrices in both orders, batches of them, and on top of a bias") {
  const auto batch = [](int step) {
    return Batch{{"a", numbers({256, 384}, step)},
                 {"b", numbers({384, 320}, step + 1)},
                 {"t", numbers({320, 384}, step + 2)},
                 {"bias", numbers({320}, step + 3)},
                 {"heads", numbers({12, 64, 72}, step + 4)},
                 {"keys", numbers({12, 80, 72}, step + 5)}};
  };
  check_narrow(
      "as in linear layers and attention",
      [](const Batch& x) {
        return std::vector{at::mm(x["a"], x["b"]),
                           at::mm(x["a"], x["t"].t()),
                           at::mm(x["b"].t(), x["a"].t()),
                           at::addmm(x["bias"], x["a"], x["b"]),
                           at::bmm(x["heads"], x["keys"].transpose(1, 2))};
      },
      batch,
      5);
}

TEST_CASE("max pooling of bfloat16, and its gradient") {
  for (const int64_t size : {5, 6, 28, 70}) {
    const auto images = [=](int step) {
      const at::Tensor x = random({2, 3, size, size + 1}, step);
      return Batch{{"x", (step < 3 ? x : with_odd_numbers(x)).to(at::kBFloat16)}};
    };
    check_narrow(
        "pairs, and windows that overlap",
        [](const Batch& x) {
          const auto [pairs, pair_places] = at::max_pool2d_with_indices(x["x"], {2, 2});
          const auto [windows, places] = at::max_pool2d_with_indices(x["x"], {3, 3}, {2, 2});
          return std::vector{pairs,
                             pair_places,
                             windows,
                             places,
                             at::max_pool2d_with_indices_backward(
                                 pairs, x["x"], {2, 2}, {2, 2}, {0, 0}, {1, 1}, false, pair_places),
                             at::max_pool2d_with_indices_backward(
                                 windows, x["x"], {3, 3}, {2, 2}, {0, 0}, {1, 1}, false, places)};
        },
        images,
        4);
  }
}

TEST_SUITE_END();
