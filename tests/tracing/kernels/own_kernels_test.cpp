#include "tracing/kernels/own_kernels.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/types.h>

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "support/with_threads.h"
#include "tracing/error_text.h"
#include "tracing/kernel_checks.h"
#include "tracing/kernels/avx512.h"

TEST_SUITE_BEGIN("tracing/kernels/own_kernels");

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr int kUlps = 4;  // of kernels whose rows name none: their sums have another order

/// Runs all kernels for the one operator of `body`, whichever of them a plan would choose: the
/// results are as near to the operator's as their rows say.
/// \param fill    gives the state other numbers
/// \param cancel  whether sums may cancel out: only kernels that have a bound are held to one then
/// \return how many have one
int check_bounds(const Body& body,
                 const CapturedState& state,
                 const std::function<void(int)>& fill,
                 bool cancel) {
  const Recorded recorded(body, {}, state);
  const Plan plan = make_plan(recorded.program);
  REQUIRE(plan.instructions.size() == 1);
  const Instruction& instruction = plan.program.instructions[plan.instructions[0].index];
  const at::Tensor& got = plan.memory->tensor(plan.program.outputs[0].second);
  int kernels = 0;
  for (const OwnKernel& own : own_kernels()) {
    if (operator_name(instruction.op) != own.op || !own.accepts(plan.program, instruction) ||
        (own.ulps == 0 && cancel)) {
      continue;
    }
    kernels += own.ulps > 0 ? 1 : 0;
    const int ulps = own.ulps > 0 ? own.ulps : kUlps;
    const std::unique_ptr<Kernel> kernel = own.make(plan.program, instruction, *plan.memory);
    for (int step = 0; step < 20; ++step) {
      fill(step);
      kernel->run();
      const at::Tensor expected = body({})[0];
      const double unit =
          std::numeric_limits<float>::epsilon() * expected.abs().max().item<double>();
      CHECK(got.sub(expected).abs().max().item<double>() <= ulps * unit);
    }
  }
  return kernels;
}

}  // namespace

TEST_CASE("sums of columns keep LibTorch's order, however many rows and columns there are") {
  for (const int64_t rows : {1, 3, 16, 33, 64, 257, 1030}) {
    for (const int64_t columns : {8, 10, 32, 45, 130}) {
      check_same(
          std::to_string(rows) + " x " + std::to_string(columns),
          [](const Batch& x) { return std::vector{x["a"].sum({0}, /*keepdim=*/true)}; },
          [=](int step) {
            return Batch{{"a", random({rows, columns}, step)}};
          },
          1);
    }
  }
}

TEST_CASE("sums over several first dimensions are those of columns") {
  const auto batch = [](int step) { return Batch{{"a", random({6, 37, 45}, step)}}; };
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{0}, {0, 1}}) {
    CAPTURE(dims.size());
    for (const bool keeps : {false, true}) {
      check_same(
          keeps ? "kept as ones" : "left out",
          [&](const Batch& x) { return std::vector{x["a"].sum(dims, keeps)}; },
          batch,
          1);
    }
  }
  check_same(
      "others are left to LibTorch",
      [](const Batch& x) {
        const auto sum = [&](const std::vector<int64_t>& dims) { return x["a"].sum(dims); };
        return std::vector{sum({1}), sum({0, 2}), sum({1, 0})};
      },
      batch,
      0);
}

TEST_CASE("sums of less columns than a vector has lanes are left to LibTorch") {
  check_same(
      "four columns",
      [](const Batch& x) { return std::vector{x["a"].sum({0})}; },
      [](int step) {
        return Batch{{"a", random({257, 4}, step)}};
      },
      0);
}

TEST_CASE("cross entropy forward and backward, with rows to ignore") {
  const auto batch = [](int step) {
    at::Tensor label = at::randint(6, {37}, at::detail::createCPUGenerator(step + 1), at::kLong);
    label[step] = -100;
    return Batch{{"x", random({37, 6}, step)}, {"label", label}};
  };
  check_same(
      "cross entropy",
      [](const Batch& x) {
        const at::Tensor logs = at::log_softmax(x["x"], 1);
        const auto [loss, weight] = at::nll_loss_forward(logs, x["label"], {}, 1, -100);
        const at::Tensor grad =
            at::nll_loss_backward(at::ones_like(loss), logs, x["label"], {}, 1, -100, weight);
        return std::vector{loss, at::_log_softmax_backward_data(grad, logs, 1, at::kFloat)};
      },
      batch,
      4);
}

TEST_CASE("softmax forward and backward") {
  check_same(
      "softmax",
      [](const Batch& x) {
        const at::Tensor y = at::softmax(x["x"], -1);
        return std::vector{y, at::_softmax_backward_data(x["g"], y, 2, at::kFloat)};
      },
      [](int step) {
        return Batch{{"x", random({3, 5, 19}, step)}, {"g", random({3, 5, 19}, step + 9)}};
      },
      2);
}

TEST_CASE("softmax over rows of any width, with infinities and NaN, and over other dimensions") {
  for (const int64_t width : {1, 3, 7, 8, 9, 16, 33, 130, 2048, 2049, 2100, 4096, 5003}) {
    check_same(
        "rows of " + std::to_string(width),
        [](const Batch& x) {
          const at::Tensor logs = at::log_softmax(x["x"], -1);
          const at::Tensor shares = at::softmax(x["x"], -1);
          return std::vector{logs,
                             shares,
                             at::_log_softmax_backward_data(x["g"], logs, -1, at::kFloat),
                             at::_softmax_backward_data(x["g"], shares, -1, at::kFloat)};
        },
        [=](int step) {
          const at::Tensor x = random({5, width}, step) * 8;
          return Batch{{"x", step == 3 ? with_odd_numbers(x) : x}, {"g", random({5, width}, step)}};
        },
        4);
  }
  check_same(
      "the first dimension",
      [](const Batch& x) { return std::vector{at::softmax(x["x"], 0)}; },
      [](int step) {
        return Batch{{"x", random({9, 4}, step)}};
      },
      1);
}

TEST_CASE("softmax over rows stays within its bound where it may round differently") {
  for (const int64_t width : {1, 3, 8, 33, 130, 2048, 2049, 5003}) {
    CAPTURE(width);
    const at::Tensor x = at::zeros({5, width});
    const at::Tensor logs = at::zeros({5, width});
    const at::Tensor grad = at::zeros({5, width});
    const CapturedState state = {{"x", x}, {"logs", logs}, {"grad", grad}};
    const auto fill = [&](int step) {
      x.copy_(random({5, width}, 2 * step) * 8);
      logs.copy_(at::log_softmax(x, -1));
      grad.copy_(random({5, width}, 2 * step + 1));
    };
    const auto kernels = [&](const Body& body, bool cancel = false) {
      return check_bounds(body, state, fill, cancel);
    };
    const int forward =
        kernels([=](const Batch&) { return std::vector{at::_log_softmax(x, -1, false)}; });
    const int shares =
        kernels([=](const Batch&) { return std::vector{at::_softmax(x, -1, false)}; });
    const int backward = kernels(
        [=](const Batch&) {
          return std::vector{at::_log_softmax_backward_data(grad, logs, -1, at::kFloat)};
        },
        /*cancel=*/true);
    if (uses_all_kernels()) {
      const bool is_wide = width > 2048;
      CHECK(forward == 1);
      CHECK(shares == (is_wide ? 0 : 1));
      CHECK(backward == (is_wide ? 0 : 2));
    }
  }
}

TEST_CASE("a single row is summed up in LibTorch's order, not in one that mostly has its bits") {
  const Body body = [](const Batch& x) {
    const at::Tensor logs = at::log_softmax(x["x"], -1);
    const at::Tensor shares = at::softmax(x["x"], -1);
    return std::vector{logs,
                       shares,
                       at::_log_softmax_backward_data(x["g"], logs, -1, at::kFloat),
                       at::_softmax_backward_data(x["g"], shares, -1, at::kFloat)};
  };
  for (const int64_t width : {17, 117, 257}) {
    CAPTURE(width);
    const auto batch = [&](int step) {
      return Batch{{"x", random({1, width}, step)}, {"g", random({1, width}, step + 999)}};
    };
    Recorded recorded(body, batch(0));
    PlannedExecutor plan(recorded.program, TextLog(LogLevel::Error));
    int other_bits = 0;
    for (int step = 1; step < 500; ++step) {
      const Batch row = batch(step);
      const std::vector<at::Tensor> expected = body(row);
      const std::vector<at::Tensor>& got = plan.run(row, kAlwaysDue);
      for (size_t i = 0; i < expected.size(); ++i) {
        other_bits += equal_bytes(got[i], expected[i]) ? 0 : 1;
      }
    }
    CHECK(other_bits == 0);
  }
}

TEST_CASE("a label out of bounds is an error that names the row") {
  const Body body = [](const Batch& x) {
    const auto [loss, weight] = at::nll_loss_forward(x["x"], x["label"], {}, 1, -100);
    return std::vector{loss};
  };
  const auto batch = [](int64_t label) {
    return Batch{{"x", random({2, 3}, 1)}, {"label", torch::tensor({int64_t{0}, label})}};
  };
  Recorded recorded(body, batch(1));
  PlannedExecutor plan(recorded.program, TextLog(LogLevel::Error));
  for (int64_t label : {0, 1, 2}) {
    plan.run(batch(label), kAlwaysDue);
  }
  const std::string error = error_text([&] { plan.run(batch(3), kAlwaysDue); });
  CHECK_MESSAGE(error.find("row 1") != std::string::npos, error);
}

TEST_CASE("gradients of slices, of any dimension and part") {
  const auto batch = [](int step) { return Batch{{"grad", random({4, 3, 5}, step)}}; };
  check_same(
      "slices",
      [](const Batch& x) {
        return std::vector{at::slice_backward(x["grad"], {4, 3, 5}, 0, 0, 4, 1),
                           at::slice_backward(x["grad"], {9, 3, 5}, 0, 2, 6, 1),
                           at::slice_backward(x["grad"], {4, 7, 5}, 1, 4, 7, 1),
                           at::slice_backward(x["grad"], {4, 3, 6}, 2, 0, 5, 1)};
      },
      batch,
      4);
  check_same(
      "with steps, or counted from the end",
      [](const Batch& x) {
        return std::vector{at::slice_backward(x["grad"], {7, 3, 5}, 0, 0, 7, 2),
                           at::slice_backward(x["grad"], {9, 3, 5}, 0, -4, 9, 1)};
      },
      batch,
      0);
}

TEST_CASE("max pooling of any window, with NaN") {
  for (const int64_t side : {2, 7, 8, 9, 28, 33}) {
    check_same(
        "pairs of " + std::to_string(side),
        [](const Batch& x) {
          const auto [y, indices] = at::max_pool2d_with_indices(x["a"], {2, 2});
          return std::vector{y, indices};
        },
        [=](int step) {
          return Batch{{"a", with_odd_numbers(random({2, 3, side, side}, step))}};
        },
        1);
  }
  check_same(
      "three by two, overlapping",
      [](const Batch& x) {
        const auto [y, indices] = at::max_pool2d_with_indices(x["a"], {3, 2}, {2, 1});
        return std::vector{y, indices};
      },
      [](int step) {
        return Batch{{"a", with_odd_numbers(random({2, 3, 9, 10}, step))}};
      },
      1);
}

TEST_CASE("a masked fill whose mask repeats over the first dimensions") {
  check_same(
      "causal",
      [](const Batch& x) {
        return std::vector{x["a"].masked_fill(x["mask"], -std::numeric_limits<double>::infinity())};
      },
      [](int step) {
        return Batch{{"a", random({2, 3, 6, 6}, step)},
                     {"mask", at::ones({6, 6}, at::kBool).triu(1)}};
      },
      1);
}

TEST_CASE("copies from any order of four dimensions to any other") {
  const auto batch = [](int step) {
    return Batch{{"a", with_odd_numbers(random({3, 17, 8, 40}, step))}};
  };
  std::vector<int64_t> order = {0, 1, 2, 3};
  do {
    check_same(
        fmt::format("{}: the whole, and a part", fmt::join(order, ", ")),
        [=](const Batch& x) {
          const at::Tensor turned = x["a"].permute(order);
          return std::vector{turned.clone(at::MemoryFormat::Contiguous),
                             turned.narrow(1, 1, 2).clone(at::MemoryFormat::Contiguous)};
        },
        batch,
        2);
  } while (std::next_permutation(order.begin(), order.end()));
  check_same(
      "into a part, and what is repeated",
      [](const Batch& x) {
        const at::Tensor target = x["a"][0].expand({3, -1, -1, -1}).clone();
        target.narrow(3, 8, 20).copy_(x["a"].narrow(3, 3, 20));
        return std::vector{target};
      },
      batch,
      2);
}

TEST_CASE("what is copied within one tensor is left to LibTorch") {
  check_same(
      "a row to the next",
      [](const Batch& x) {
        const at::Tensor a = x["a"].clone();
        a[1].copy_(a[0]);
        return std::vector{a};
      },
      [](int step) {
        return Batch{{"a", random({3, 16}, step)}};
      },
      1);
}

TEST_CASE("gradients of parts, with gaps before, between and behind them") {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("rondo::gradients_of_parts", "")
          .typed<at::Tensor(at::TensorList, at::IntArrayRef, int64_t, at::IntArrayRef)>();
  const auto batch = [](int step) {
    return Batch{{"a", with_odd_numbers(random({4, 5}, step))}, {"b", random({4, 2, 5}, step + 9)}};
  };
  check_same(
      "a row and two",
      [](const Batch& x) {
        return std::vector{op.call({x["b"], x["a"]}, {4, 9, 5}, 1, {6, 2})};
      },
      batch,
      1);
  check_same(
      "columns of what lies in another order",
      [](const Batch& x) {
        const at::Tensor a = x["a"].t().contiguous().t();
        return std::vector{op.call({a, x["b"].select(1, 0)}, {2, 4, 5}, 0, {1, 0})};
      },
      batch,
      2);
}

TEST_CASE("the gradient of a mean of cross entropies, of any width, by one thread and by two") {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("rondo::cross_entropy_backward", "")
                             .typed<at::Tensor(const at::Tensor&,
                                               const at::Tensor&,
                                               const at::Tensor&,
                                               int64_t,
                                               const at::Tensor&)>();
  const float gradients[] = {1.0F, -0.25F, 0.0F, -0.0F, std::numeric_limits<float>::infinity()};
  for (const int threads : {1, 2}) {
    const WithThreads some(threads);
    for (const int64_t classes : {1, 2, 10, 16, 65, 2048, 2049, 5000}) {
      const int64_t rows = classes == 65 ? 4096 : 7;
      for (const bool is_odd : {false, true}) {
        check_same(
            fmt::format("{} classes, {} threads, {}", classes, threads, is_odd),
            [](const Batch& x) {
              return std::vector{op.call(x["g"], x["logs"], x["label"], 0, x["weight"])};
            },
            [=](int step) {
              const at::Tensor logs = at::log_softmax(random({rows, classes}, step) * 5, 1);
              return Batch{{"g", at::full({}, gradients[step])},
                           {"logs", is_odd && step > 1 ? with_odd_numbers(logs) : logs},
                           {"label", at::arange(rows).remainder(classes)},
                           {"weight", at::full({}, 6.0F)}};
            },
            1);
      }
    }
  }
}

TEST_CASE("norms of gradients, and what clipping makes of them") {
  for (const int64_t count : {1, 5, 8, 13, 64, 4099}) {
    check_same(
        std::to_string(count),
        [=](const Batch& x) {
          const at::Tensor a = x["a"].norm();
          const at::Tensor b = x["b"].norm();
          const at::Tensor all = at::stack({a, b, a});
          return std::vector{a, b, all, all.norm(), at::clamp_max(a, 0.5)};
        },
        pairs({count}, {count, 3}),
        5);
  }
  check_same(
      "of another order, and of a matrix that lies in columns",
      [](const Batch& x) {
        return std::vector{x["a"].norm(1), x["b"].t().norm()};
      },
      pairs({13}, {13, 5}),
      0);
  check_same(
      "vectors side by side",
      [](const Batch& x) {
        return std::vector{at::stack({x["a"], x["b"]})};
      },
      pairs({13}, {13}),
      0);
}

TEST_CASE("the gradient of GELU, in whole vectors") {
  if (!has_avx512()) {
    MESSAGE("skipped: this machine has no AVX-512");
    return;
  }
  const Body body = [](const Batch& x) {
    return std::vector{at::gelu_backward(x["b"], x["a"] * 3), at::gelu_backward(x["a"], x["b"])};
  };
  check_same("whole", body, pairs({64, 96}, {64, 96}), 3);
  check_same("some left over", body, pairs({7, 9}, {7, 9}), 1);
  check_same(
      "by the hyperbolic tangent",
      [](const Batch& x) { return std::vector{at::gelu_backward(x["b"], x["a"], "tanh")}; },
      pairs({64}, {64}),
      0);
}

TEST_CASE("a number of batches is counted") {
  const at::Tensor batches = torch::full({}, (int64_t{1} << 40) + 1);
  const at::Tensor several = torch::ones({3}, at::kLong);
  check_same("one number",
             [=](const Batch& x) {
               batches.add_(3, 2);
               return std::vector{x["a"] + x["b"]};
             },
             pairs({3}, {3}),
             2,
             {{"batches", batches}});
  check_same("several",
             [=](const Batch& x) {
               several.add_(1);
               return std::vector{x["a"] + x["b"]};
             },
             pairs({3}, {3}),
             1,
             {{"several", several}});
}

TEST_CASE("kernels that may round differently stay within their bounds") {
  const auto batch = [](int step) {
    return Batch{{"a", random({64, 96}, step) * 4}, {"b", random({64, 96}, step + 9)}};
  };
  const at::Tensor mean = at::zeros({8});
  const at::Tensor variance = at::ones({8});
  const Body body = [=](const Batch& x) {
    return std::vector{std::get<0>(at::native_batch_norm(x["a"].view({4, 8, 12, 16}),
                                                         x["b"][0].narrow(0, 0, 8).contiguous(),
                                                         x["b"][1].narrow(0, 0, 8).contiguous(),
                                                         mean,
                                                         variance,
                                                         /*training=*/true,
                                                         0.1,
                                                         1e-5)),
                       at::gelu(x["a"]),
                       at::gelu_backward(x["b"], x["a"]),
                       x["a"].mm(x["b"].t()),
                       x["a"].view({2, 32, 96}).bmm(x["b"].view({2, 32, 96}).transpose(1, 2))};
  };
  check_close(body, batch, {{"mean", mean}, {"variance", variance}});
}

TEST_SUITE_END();
